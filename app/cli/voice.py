"""What the command line says, and that nobody listening does not matter.

Owns the two streams. Invariant: a closed or broken output (a terminal that went away, a pipe whose
reader left) is swallowed once and then points to nothing; no run ends because of it (prc-02).
"""

import os
import sys
from contextlib import suppress
from typing import TextIO

from app.errors import LongwatchError


def say(text: str) -> None:
    """Write a line for people, or a script, to the output."""
    _write(sys.stdout, text)


def complain(text: str) -> None:
    """Write a line to the error output."""
    _write(sys.stderr, text)


def complain_of(error: LongwatchError) -> None:
    """Say an error as one message: what happened, and what to do next."""
    complain(f"error: {error}")


def flush() -> None:
    """Bring everything out, so that the interpreter finds nothing to fail at when it ends."""
    for stream in (sys.stdout, sys.stderr):
        _write(stream, None)


def _write(stream: TextIO | None, text: str | None) -> None:
    if stream is None or stream.closed:
        return
    try:
        if text is not None:
            stream.write(text + "\n")
        stream.flush()
    except UnicodeEncodeError:
        stream.write((text or "").encode("ascii", "backslashreplace").decode() + "\n")
    except (OSError, ValueError):
        _point_to_nothing(stream)


def _point_to_nothing(stream: TextIO) -> None:
    """Let the lost descriptor be the null device: later writes, of anybody, do not fail."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
