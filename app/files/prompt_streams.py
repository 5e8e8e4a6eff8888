"""Prompt files as streams of bytes: plain, gzip in several members, zstd in several frames.

Owns opening, unpacking and the proof that nothing is missing. Does not know what a line means.
Invariant: a file that was cut short is an `InputError` that names it, never a shorter run.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard

from app.errors import InputError

_CHUNK_BYTES = 16 << 10
_BUFFER_BYTES = 1 << 18
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CUT_SHORT = "copy it again; nothing was started"


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Give the stream of unpacked bytes, and the raw file, whose position is the progress."""
    try:
        with path.open("rb", buffering=_BUFFER_BYTES) as raw:
            _check_first_bytes(path, raw)
            yield _reader(path, raw), raw
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise InputError(f"{path} is damaged or cut short: {error}", hint=_CUT_SHORT) from error
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}", hint="check the path and its rights"
        ) from error


def _check_first_bytes(path: Path, raw: BinaryIO) -> None:
    first = raw.read(2)
    raw.seek(0)
    if not first and path.suffix in {".gz", ".zst"}:
        raise InputError(f"{path} is empty, which no packed file is", hint=_CUT_SHORT)
    if first in _UTF16_MARKS:
        raise InputError(f"{path} is UTF-16", hint="convert it to UTF-8: iconv -f UTF-16 -t UTF-8")


def _reader(path: Path, raw: BinaryIO) -> BinaryIO:
    if path.suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), _BUFFER_BYTES)
    if path.suffix == ".zst":
        return io.BufferedReader(_ZstdFrames(raw), _BUFFER_BYTES)
    return raw


class _ZstdFrames(io.RawIOBase):
    """All frames of a zstd file. The library's own reader takes a missing end for the end."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._is_in_frame = False
        self._packed = b""
        self._plain = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]  # the stub's Buffer is only in Python 3.12
        while not self._plain:
            if not self._packed and not self._fetch():
                return 0
            self._unpack()
        n_bytes = min(len(buffer), len(self._plain))
        buffer[:n_bytes] = self._plain[:n_bytes]
        self._plain = self._plain[n_bytes:]
        return n_bytes

    def _fetch(self) -> bool:
        self._packed = self._raw.read(_CHUNK_BYTES)
        if not self._packed and self._is_in_frame:
            raise EOFError("the last zstd frame has no end")
        return bool(self._packed)

    def _unpack(self) -> None:
        if not self._is_in_frame:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._is_in_frame = True
        self._plain = memoryview(self._frame.decompress(self._packed))
        self._packed = b""
        if self._frame.eof:
            self._packed = self._frame.unused_data
            self._is_in_frame = False
