"""Some lines of a file of lines, spread evenly over it, without reading all of it.

Owns the choice: the first whole line at or behind each of n places at equal distances in bytes, so
the same file gives the same lines; of a small file, lines at equal distances in number. A packed
file has no such places: its first lines are taken.
"""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.files.prompt_streams import unpacked

MAX_LINE_BYTES = 16_000_000
WHOLE_BYTES = 4_000_000
_BLOCK_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PACKED = frozenset({".gz", ".zst"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadLine:
    """A line and where it begins, in bytes of the unpacked file."""

    offset: int
    content: bytes


def spread_lines(path: Path, n: int, *, whole_bytes: int = WHOLE_BYTES) -> list[SpreadLine]:
    """Return up to n lines that are not blank, in the file's order. OSError, InputError.

    A file of at most `whole_bytes` is read whole.
    """
    if path.suffix in _PACKED:
        return _first_lines(path, n)
    if path.stat().st_size > whole_bytes:
        return _spread(path, n)
    every = _first_lines(path, None)
    return every if len(every) <= n else [every[place * len(every) // n] for place in range(n)]


def line_number(path: Path, offset: int) -> int:
    """Return the number of the line that begins at an offset; reads all that is before it."""
    number, left = 1, offset
    with unpacked(path) as (plain, _):
        while left > 0 and (block := plain.read(min(left, _BLOCK_BYTES))):
            number += block.count(b"\n")
            left -= len(block)
    return number


def _spread(path: Path, n: int) -> list[SpreadLine]:
    found: list[SpreadLine] = []
    size_bytes, after = path.stat().st_size, 0
    with path.open("rb") as file:
        for place in range(n):
            wanted = size_bytes * place // n
            file.seek(max(after, wanted - 1))
            if wanted > after:
                file.readline(MAX_LINE_BYTES)  # to the end of the line that the place lies in
            offset = file.tell()
            line = file.readline(MAX_LINE_BYTES)
            after = file.tell()
            if line.strip() and len(line) < MAX_LINE_BYTES:
                found.append(SpreadLine(offset=offset, content=_clean(line, offset)))
    return found


def _first_lines(path: Path, n: int | None) -> list[SpreadLine]:
    found: list[SpreadLine] = []
    offset = 0
    with unpacked(path) as (plain, _):
        for line in islice(iter(lambda: plain.readline(MAX_LINE_BYTES), b""), n):
            if line.strip() and len(line) < MAX_LINE_BYTES:
                found.append(SpreadLine(offset=offset, content=_clean(line, offset)))
            offset += len(line)
    return found


def _clean(line: bytes, offset: int) -> bytes:
    return line.removeprefix(_BYTE_ORDER_MARK) if offset == 0 else line
