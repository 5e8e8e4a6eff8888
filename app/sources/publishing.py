"""From a draft to the partition's folder: what may be replaced, and in which order.

Invariants: whoever looks sees the old file or the new one, never a part; records that are there
and differ are only replaced on demand; the same bytes are left untouched; the records come last,
so that a broken attempt is finished by the next one.
"""

import os
from collections.abc import Iterator
from enum import StrEnum
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from app.errors import ConflictError
from app.files.appending import sync_folder
from app.files.space import storage_error
from app.sources.contract import Gives
from app.sources.writing import KEPT, REPORT, SKIPPED

_CHUNK_BYTES = 1 << 20
_DIGITS = 16


class Published(StrEnum):
    WRITTEN = "written"
    UNCHANGED = "unchanged"  # the same records were there already
    REPLACED = "replaced"


def records_file(gives: Gives) -> str:
    """Return the name of the file of records."""
    return f"{gives.value}.jsonl"


def publish(draft: Path, partition: Path, gives: Gives, *, overwrite: bool) -> Published:
    """Move the files of a draft to their place; ConflictError where other records are there."""
    try:
        return _publish(draft, partition, gives, overwrite=overwrite)
    except OSError as error:
        raise storage_error(partition, "write to", error, then="prepare again") from error


def _publish(draft: Path, partition: Path, gives: Gives, *, overwrite: bool) -> Published:
    name = records_file(gives)
    target = partition / name
    _refuse_other_kind(partition, gives)
    published = Published.WRITTEN
    if target.exists():
        published = Published.UNCHANGED if _is_same(draft / name, target) else Published.REPLACED
    if published is Published.REPLACED and not overwrite:
        raise ConflictError(
            f"{target} is there and is not what this preparation gives: it has {_told(target)},"
            f" this one {_told(draft / name)}",
            hint="give --overwrite to replace it, or take another output_dir",
        )
    for each in (KEPT, SKIPPED, REPORT, name):
        if not (partition / each).exists() or not _is_same(draft / each, partition / each):
            with (draft / each).open("rb") as file:
                os.fsync(file.fileno())
            (draft / each).replace(partition / each)
    sync_folder(partition)
    return published


def _refuse_other_kind(partition: Path, gives: Gives) -> None:
    """Refuse to put prompts beside answers: nobody could tell which of the two is meant."""
    for other in Gives:
        path = partition / records_file(other)
        if other is not gives and path.exists():
            raise ConflictError(
                f"{path} is there, and this preparation gives {records_file(gives)}",
                hint="remove it, or take another name for the source",
            )


def _is_same(one: Path, other: Path) -> bool:
    if one.stat().st_size != other.stat().st_size:
        return False
    return all(a == b for a, b in zip_longest(_chunks(one), _chunks(other)))


def _told(path: Path) -> str:
    """Return rows and digest of a file in words."""
    digest, n_rows = sha256(), 0
    for chunk in _chunks(path):
        digest.update(chunk)
        n_rows += chunk.count(b"\n")
    return f"{n_rows:,} rows (sha256 {digest.hexdigest()[:_DIGITS]}…)"


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
