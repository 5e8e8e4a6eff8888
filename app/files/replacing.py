"""Replacing a file as a whole: temporary file beside it, fsync, rename, fsync of the folder.

Owns the order of those steps and the name of the temporary file. Invariants: a reader sees the
old file or the new one, never a part; nothing is written outside the target's own folder (sto-02);
a symlink stays a symlink; a killed attempt leaves one file, which the next attempt overwrites.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from app.files.appending import make_folder, sync_folder
from app.files.space import storage_error
from app.seams import Seam, seam

_BUFFER_BYTES = 1 << 20


@contextmanager
def replacing(
    target: Path,
    *,
    written: Seam | None = None,
    synced: Seam | None = None,
    renamed: Seam | None = None,
) -> Iterator[BinaryIO]:
    """Give a file to write; when the block ends well, it has become the target.

    The seams lie behind the last write, the fsync and the rename. StorageError for every OSError,
    also of the block itself; the temporary file is then removed.
    """
    real = target.resolve() if target.is_symlink() else target
    beside = real.with_name(f".{real.name}.part")
    try:
        make_folder(real.parent)
        with beside.open("wb", buffering=_BUFFER_BYTES) as file:
            yield file
            file.flush()
            _pass(written)
            os.fsync(file.fileno())
        _pass(synced)
        beside.replace(real)
        sync_folder(real.parent)
        _pass(renamed)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise storage_error(target, "replace", error) from error
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def _pass(point: Seam | None) -> None:
    if point is not None:
        seam(point)
