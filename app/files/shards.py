"""The answers of one worker for one partition: a file of whole lines, appended and synced.

Owns the writing of lines, where each begins, and the name of a shard. What a line says is
`records`, what is found after a kill is `tails`. Invariant: bytes before the claim of bytes: a
line counts only after `sync` returned, and after an error nothing of the tick is in the file.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from app.errors import StorageError
from app.files.appending import AppendFile, read_exactly
from app.files.space import storage_error
from app.seams import Seam, seam


def shard_name(run_id: int, worker_id: int, number: int) -> str:
    """Return the file name; worker ids are never used twice, so no two writers share one."""
    return f"responses-{run_id}-{worker_id}-{number}.jsonl"


class ShardWriter:
    """Opened at the first line. When append or sync raise, append the same lines again later."""

    def __init__(self, path: Path) -> None:
        self._file = AppendFile(path)

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    @property
    def inode(self) -> int:
        return self._file.inode

    def append(self, lines: Sequence[bytes]) -> list[int]:
        """Write the lines and return the offset of each. They are not safe before `sync`."""
        seam(Seam.SHARD_BEFORE_WRITE)
        offset = self._file.append(b"".join(lines))
        seam(Seam.SHARD_WRITTEN)
        offsets = []
        for line in lines:
            offsets.append(offset)
            offset += len(line)
        return offsets

    def sync(self) -> None:
        """Wait until the lines are on the disk. On failure those since the last sync are gone."""
        self._file.sync()
        seam(Seam.SHARD_SYNCED)

    def cut(self, size_bytes: int) -> None:
        """Take back lines that the ledger did not accept."""
        self._file.cut(size_bytes)
        seam(Seam.SHARD_CUT)

    def close(self) -> None:
        self._file.close()


def read_line(path: Path, offset: int, length: int) -> bytes:
    """Return one line with its newline; StorageError if those bytes are not exactly one line."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise storage_error(path, "read", error) from error
    try:
        return read_line_at(path, descriptor, offset, length)
    finally:
        os.close(descriptor)


def read_line_at(path: Path, descriptor: int, offset: int, length: int) -> bytes:
    """Return one line of an open file; `path` is only for the message."""
    line = read_exactly(path, descriptor, offset, length)
    if line.find(b"\n") != length - 1 or length == 0:
        raise StorageError(
            f"{path}: bytes {offset} to {offset + length} are not one line",
            hint="it was changed from outside; start again to compare it with the ledger",
        )
    return line
