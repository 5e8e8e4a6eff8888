"""A file that only grows, and that after every failure is as long as it was before.

Owns the descriptor, the size and the cutting back; knows nothing of what the bytes mean.
Invariants: one writer, ever; after an error that `append` or `sync` raises, the file ends where
the last good append, or sync, ended, so the caller may simply try the same bytes again.
"""

import os
from pathlib import Path

from app.errors import StorageError
from app.files.space import storage_error

_READ_WRITE = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each durably in the one that holds it."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_folder(made.parent)


class AppendFile:
    """Opened at the first use; its folder is made if it is not there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._inode = 0
        self._size_bytes = 0
        self._synced_bytes = 0
        self._is_torn = False
        self._is_named = False

    @property
    def size_bytes(self) -> int:
        self._opened()
        return self._size_bytes

    @property
    def inode(self) -> int:
        self._opened()
        return self._inode

    def append(self, chunk: bytes) -> int:
        """Write the bytes at the end and return their offset; StorageError leaves no part of it."""
        descriptor = self._opened()
        self._check_still_ours(descriptor)
        offset = self._size_bytes
        try:
            written = 0
            while written < len(chunk):
                written += os.write(descriptor, memoryview(chunk)[written:])
        except OSError as error:
            self._cut_back(offset)
            raise storage_error(self.path, "write", error) from error
        self._size_bytes = offset + len(chunk)
        return offset

    def sync(self) -> None:
        """Wait until everything appended is on the disk.

        After a failed sync nobody knows which pages were lost, and the next sync would succeed
        without them. So the file is cut to what was synced before, and must be appended to again.
        """
        descriptor = self._opened()
        try:
            os.fdatasync(descriptor)
            if not self._is_named:
                sync_folder(self.path.parent)
                self._is_named = True
        except OSError as error:
            self._cut_back(self._synced_bytes)
            raise storage_error(self.path, "sync", error) from error
        self._synced_bytes = self._size_bytes

    def cut(self, size_bytes: int) -> None:
        """Shorten the file to a size and wait until that is on the disk."""
        descriptor = self._opened()
        if size_bytes > self._size_bytes:
            raise StorageError(
                f"{self.path} holds {self._size_bytes} bytes, {size_bytes} were expected",
                hint="it was shortened from outside; start again to compare it with the ledger",
            )
        try:
            os.ftruncate(descriptor, size_bytes)
            os.fdatasync(descriptor)
        except OSError as error:
            raise storage_error(self.path, "shorten", error) from error
        self._size_bytes = self._synced_bytes = size_bytes
        self._is_torn = False

    def read(self, offset: int, length: int) -> bytes:
        """Return exactly that many bytes; StorageError if the file has less."""
        return read_exactly(self.path, self._opened(), offset, length)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self) -> int:
        if self._descriptor is not None:
            return self._descriptor
        try:
            make_folder(self.path.parent)
            self._descriptor = os.open(self.path, _READ_WRITE, 0o644)
            facts = os.fstat(self._descriptor)
        except OSError as error:
            raise storage_error(self.path, "open", error) from error
        self._inode = facts.st_ino
        self._size_bytes = self._synced_bytes = facts.st_size
        return self._descriptor

    def _check_still_ours(self, descriptor: int) -> None:
        """Refuse to write where the bytes would be lost or the offsets wrong."""
        facts = os.fstat(descriptor)
        if facts.st_nlink == 0:
            raise StorageError(
                f"{self.path} was removed while it was being written",
                hint="start the run again; what the file held will be generated again",
            )
        if facts.st_size == self._size_bytes:
            return
        if not self._is_torn:
            raise StorageError(
                f"{self.path} is {facts.st_size} bytes long and should be {self._size_bytes}: "
                "something else writes to it",
                hint="end the other writer and start the run again",
            )
        self.cut(self._size_bytes)

    def _cut_back(self, size_bytes: int) -> None:
        """Drop a torn end; if even that fails, the next append tries it first."""
        self._size_bytes = size_bytes
        try:
            os.ftruncate(self._opened(), size_bytes)
        except OSError:
            self._is_torn = True


def read_exactly(path: Path, descriptor: int, offset: int, length: int) -> bytes:
    """Return the bytes of an open file from an offset; StorageError if it ends before."""
    parts = []
    missing = length
    try:
        while missing > 0:
            part = os.pread(descriptor, missing, offset + length - missing)
            if not part:
                break
            parts.append(part)
            missing -= len(part)
    except OSError as error:
        raise storage_error(path, "read", error) from error
    if missing:
        raise StorageError(
            f"{path} ends {missing} bytes before byte {offset + length}",
            hint="it was shortened from outside; start again to compare it with the ledger",
        )
    return b"".join(parts)
