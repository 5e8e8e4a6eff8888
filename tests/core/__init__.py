"""The pure decisions: tables and properties, no input or output."""
