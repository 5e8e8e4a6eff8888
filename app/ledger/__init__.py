"""Floor 1: the SQLite run ledger. The only package that knows SQL; hands out core types."""
