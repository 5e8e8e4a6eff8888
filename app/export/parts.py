"""A file of merged data under a name of its own until it is whole.

Owns the order: written beside, synced, renamed, the folder synced. Invariant: a reader of the
folder sees whole files only; what was not published is removed when it is left.
"""

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from app.errors import StorageError
from app.files.appending import make_folder, sync_folder
from app.files.space import storage_error

_BUFFER_BYTES = 1 << 20


class PartFile:
    """Where a file is written (`part`) and what it will be called (`path`)."""

    def __init__(self, path: Path) -> None:
        self.path, self.part = path, path.with_name(f".{path.name}.part")
        try:
            make_folder(path.parent)
        except OSError as error:
            raise self.failed(error) from error

    def failed(self, error: OSError) -> StorageError:
        return storage_error(self.path, "write", error, then="merge again")

    def give_name(self) -> None:
        """Publish what was written and closed."""
        try:
            self.part.replace(self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise self.failed(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self.part.unlink(missing_ok=True)


class LineFile(PartFile):
    """One of lines."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._file: BinaryIO = self.part.open("wb", buffering=_BUFFER_BYTES)
        except OSError as error:
            raise self.failed(error) from error

    def write(self, line: bytes) -> None:
        try:
            self._file.write(line)
        except OSError as error:
            raise self.failed(error) from error

    def close(self) -> int:
        """Publish the lines; return how many bytes they are."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            n_bytes = self._file.tell()
            self._file.close()
        except OSError as error:
            raise self.failed(error) from error
        self.give_name()
        return n_bytes

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._file.close()
        super().__exit__(kind, error, trace)
