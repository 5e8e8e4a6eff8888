"""Which ids occur more than once in a prompt file.

Owns the collecting and the wording; whether duplicates stop a start is the run's `strict_ids`.
Invariant: 64 bits per id are kept, not the ids, so a million records cost about 100 MB; both
records of a duplicate run, told apart by their record number (inp-06).
"""

import hashlib
from pathlib import Path

from app.errors import InputError

_SHOWN_LINES = 5


class DuplicateIds:
    """Told of every id in order, it knows which came again."""

    def __init__(self) -> None:
        self._first_line: dict[int, int] = {}
        self._lines: dict[str, list[int]] = {}

    def add(self, key: str, line: int) -> None:
        """Note an id where it stands."""
        first = self._first_line.setdefault(hash(key), line)
        if first != line:
            self._lines.setdefault(key, [first]).append(line)

    def __len__(self) -> int:
        return len(self._lines)

    def sentences(self, most: int = 20) -> list[str]:
        """Return one sentence for each id that came again: `id "x" at lines 1 and 3`."""
        shown = [
            f'id "{key}" at lines {_listed(lines)}'
            for key, lines in list(self._lines.items())[:most]
        ]
        rest = len(self._lines) - len(shown)
        return [*shown, f"and {rest} more ids"] if rest else shown


def _listed(lines: list[int]) -> str:
    """Return line numbers as words.

    >>> _listed([1, 3]), _listed([1, 3, 4, 5, 6, 7, 8])
    ('1 and 3', '1, 3, 4, 5, 6 and 2 more')
    """
    if len(lines) <= _SHOWN_LINES:
        return f"{', '.join(map(str, lines[:-1]))} and {lines[-1]}"
    return f"{', '.join(map(str, lines[:_SHOWN_LINES]))} and {len(lines) - _SHOWN_LINES} more"


def file_sha256(path: Path) -> str:
    """Return the digest of a whole file, for the run's fingerprint."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
