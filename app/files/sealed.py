"""Files that are written once and whole: a partition's sealed answers and a run's manifest.

Owns writing them so that they are there complete or not at all, and reading lines out of many
shards for it. Which lines are valid, and their order, comes from the ledger.
Invariant: what is sealed are the bytes of the shards, never parsed and written anew.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from app.errors import StorageError
from app.files.replacing import replacing
from app.files.shards import read_line_at
from app.files.space import storage_error
from app.files.tails import stat
from app.seams import Seam

_MAX_OPEN = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFacts:
    size_bytes: int
    inode: int
    n_lines: int


class LineSource:
    """Reads lines at (path, offset, length), with the shards kept open between reads."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, int] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def read(self, path: Path, offset: int, length: int) -> bytes:
        """Return one whole line; StorageError if those bytes are not one."""
        return read_line_at(path, self._descriptor(path), offset, length)

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def _descriptor(self, path: Path) -> int:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        if len(self._open) >= _MAX_OPEN:
            os.close(self._open.popitem(last=False)[1])
        try:
            self._open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise storage_error(path, "read", error) from error
        return self._open[path]


def write_sealed(target: Path, lines: Iterable[bytes]) -> SealedFacts:
    """Write the lines as the target, replacing what was there; StorageError changes nothing."""
    n_lines = 0
    with replacing(
        target,
        written=Seam.SEAL_WRITTEN,
        synced=Seam.SEAL_SYNCED,
        renamed=Seam.SEAL_RENAMED,
    ) as file:
        for line in lines:
            if not line.endswith(b"\n"):
                raise StorageError(f"line {n_lines + 1} for {target} does not end with a newline")
            file.write(line)
            n_lines += 1
    facts = stat(target)
    if facts is None:
        raise StorageError(f"{target} was removed at the moment it was sealed")
    return SealedFacts(size_bytes=facts.size_bytes, inode=facts.inode, n_lines=n_lines)


def write_manifest(path: Path, manifest: Mapping[str, object]) -> None:
    """Write the manifest whole, in a form that people can read."""
    chunk = orjson.dumps(
        manifest, default=dict, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    )
    with replacing(path, written=Seam.MANIFEST_WRITTEN, renamed=Seam.MANIFEST_RENAMED) as file:
        file.write(chunk)


def read_manifest(path: Path) -> dict[str, object] | None:
    """Return the manifest, None if there is none yet; StorageError if it is not readable."""
    try:
        manifest = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(path, "read", error) from error
    except orjson.JSONDecodeError as error:
        raise StorageError(f"{path} is not JSON: {error}", hint="restore or remove it") from error
    if not isinstance(manifest, dict):
        raise StorageError(f"{path} is not a JSON object", hint="restore or remove it")
    return manifest
