"""One answer's line for people who look: read where the ledger says, if that is really our file.

Owns the check that what the ledger names lies in the run's output folder, links followed, so that
nobody is ever sent a byte of another file (sec-05). Reads that one line, never a whole shard.
"""

import os
import stat
from pathlib import Path
from typing import Any

import orjson

from app.errors import StorageError
from app.files.shards import read_line_at
from app.files.space import storage_error

MAX_LINE_BYTES = 64_000_000


def read_answer(
    output_dir: Path, path: Path, offset: int, length: int, *, key: str
) -> dict[str, Any]:
    """Return the record at that place; StorageError says why there is none that can be shown."""
    if length > MAX_LINE_BYTES:
        raise StorageError(f"the line has {length:,} bytes, more than {MAX_LINE_BYTES:,} are shown")
    try:
        record = orjson.loads(_read(_inside(output_dir, path), offset, length))
    except orjson.JSONDecodeError as error:
        raise StorageError(f"{path}: bytes {offset} to {offset + length} are no record") from error
    if not isinstance(record, dict) or record.get("id") != key:
        raise StorageError(f"{path}: the line at byte {offset} is not of the sample {key}")
    return record


def _inside(output_dir: Path, path: Path) -> Path:
    """Return the file itself, links followed; StorageError if it lies outside or is not there."""
    try:
        found = path.resolve(strict=True)
        folder = output_dir.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise StorageError(f"{path} is not there") from error
    if not found.is_relative_to(folder):
        raise StorageError(f"{path} does not lie in the output folder {output_dir}")
    return found


def _read(path: Path, offset: int, length: int) -> bytes:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise storage_error(path, "read", error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StorageError(f"{path} is not a regular file")
        return read_line_at(path, descriptor, offset, length)
    finally:
        os.close(descriptor)
