"""Floor 4: the command line. Parses, calls, and turns every error into one message and a code."""

from app.cli.application import main

__all__ = ["main"]
