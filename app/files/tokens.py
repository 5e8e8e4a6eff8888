"""The prompt ids of one partition: an append-only file of little-endian uint32.

Owns the packing. Offsets and lengths are in tokens and stand in the ledger; the file has no
header and no index. Invariant: a file whose size is no multiple of four was torn, and is cut at
the size that the ledger knows before anything is appended.
"""

import sys
from array import array
from collections.abc import Sequence
from pathlib import Path

from app.files.appending import AppendFile
from app.seams import Seam, seam

TOKEN_BYTES = 4


def token_path(home: Path, run_id: int, partition: str) -> Path:
    """Return where the prompt ids of a partition stand."""
    return home / "tokens" / f"{run_id}" / f"{partition}.u32"


class TokenFile:
    """Written by intake, read by workers; each opens its own."""

    def __init__(self, path: Path) -> None:
        self._file = AppendFile(path)

    @property
    def size_tokens(self) -> int:
        return self._file.size_bytes // TOKEN_BYTES

    def append(self, prompts: Sequence["array[int]"]) -> list[int]:
        """Write the prompts one after another and return the offset of each, in tokens."""
        chunk = b"".join(to_bytes(ids) for ids in prompts)
        offset = self._file.append(chunk) // TOKEN_BYTES
        seam(Seam.TOKENS_WRITTEN)
        offsets = []
        for ids in prompts:
            offsets.append(offset)
            offset += len(ids)
        return offsets

    def sync(self) -> None:
        self._file.sync()
        seam(Seam.TOKENS_SYNCED)

    def read(self, offset_tokens: int, n_tokens: int) -> "array[int]":
        """Return the ids of one prompt; StorageError if the file ends before."""
        chunk = self._file.read(offset_tokens * TOKEN_BYTES, n_tokens * TOKEN_BYTES)
        return from_bytes(chunk)

    def cut(self, size_tokens: int) -> None:
        """Drop what the ledger does not know of."""
        self._file.cut(size_tokens * TOKEN_BYTES)

    def close(self) -> None:
        self._file.close()


def to_bytes(ids: "array[int]") -> bytes:
    """Return ids as little-endian uint32, on any machine."""
    if sys.byteorder == "little":
        return ids.tobytes()
    swapped = ids[:]
    swapped.byteswap()
    return swapped.tobytes()


def from_bytes(packed: bytes) -> "array[int]":
    """Return the ids of little-endian uint32."""
    ids = array("I")
    ids.frombytes(packed)
    if sys.byteorder == "big":
        ids.byteswap()
    return ids
