"""Reading shards back after a stop or a kill: the end behind a committed offset, or all of it.

Owns finding lines, whole or torn, and rewriting a shard without some of them. Does not know what
the ledger says; comparing is recovery's. Invariants: memory is bounded by the longest line; a
line counts as whole only if it ends with 0x0A and reads as a record.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.files.records import ParsedLine, parse
from app.files.replacing import replacing
from app.files.shards import read_line_at
from app.files.space import storage_error
from app.seams import Seam

MAX_LINE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    size_bytes: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedLine:
    """One line where it stands. `parsed` is None for a line that is no record of ours."""

    offset: int
    length: int
    parsed: ParsedLine | None
    is_torn: bool = False

    @property
    def rid(self) -> str | None:
        return self.parsed.rid if self.parsed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What stands behind the committed offset: whole lines, then perhaps a torn one."""

    lines: tuple[ScannedLine, ...]
    torn_bytes: int


def stat(path: Path) -> FileFacts | None:
    """Return size and inode, None if there is no such file."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(path, "look at", error) from error
    return FileFacts(size_bytes=facts.st_size, inode=facts.st_ino)


def read_tail(path: Path, from_bytes: int) -> Tail:
    """Return the lines from an offset that is the beginning of a line."""
    found = list(scan_lines(path, from_bytes))
    return Tail(
        lines=tuple(line for line in found if not line.is_torn),
        torn_bytes=sum(line.length for line in found if line.is_torn),
    )


def scan_lines(path: Path, from_bytes: int = 0) -> Iterator[ScannedLine]:
    """Yield every line in order; a last one without newline comes as torn."""
    try:
        with path.open("rb") as file:
            offset = file.seek(from_bytes)
            while line := file.readline(MAX_LINE_BYTES):
                length = len(line)
                is_whole = line.endswith(b"\n")
                while not is_whole and (more := file.readline(MAX_LINE_BYTES)):
                    # Longer than any record of ours: only its end matters.
                    length += len(more)
                    is_whole = more.endswith(b"\n")
                fits = is_whole and length == len(line)
                yield ScannedLine(
                    offset=offset,
                    length=length,
                    parsed=parse(line) if fits else None,
                    is_torn=not is_whole,
                )
                offset += length
    except OSError as error:
        raise storage_error(path, "read", error) from error


def rewrite(path: Path, keep: Iterable[tuple[int, int]]) -> list[int]:
    """Keep only the lines at these (offset, length), in this order; return their new offsets.

    The shard is a new file afterwards, with another inode.
    """
    offsets: list[int] = []
    position = 0
    with (
        path.open("rb") as source,
        replacing(path, synced=Seam.RECOVERY_REWRITTEN, renamed=Seam.RECOVERY_RENAMED) as target,
    ):
        for offset, length in keep:
            target.write(read_line_at(path, source.fileno(), offset, length))
            offsets.append(position)
            position += length
    return offsets
