"""The files of merged records while they are written: shard after shard, each there whole or not.

Owns their names, when one is full, and what is remembered between two: `.merging.json` holds where
the next shard begins, so that a broken merge goes on behind the last whole one. Invariants: records
get their file by their own lengths alone, so that a merge that went on gives the same bytes; a
reader of `data/` sees whole shards only.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

import orjson

from app.errors import StorageError
from app.export.records import Example, line_of
from app.files.appending import make_folder, sync_folder
from app.files.replacing import replacing
from app.files.space import storage_error

STATE = ".merging.json"
_BUFFER_BYTES = 1 << 20


def shard_name(number: int, suffix: str = "jsonl") -> str:
    """Return the name of a shard, from 0.

    >>> shard_name(3)
    'train-00003.jsonl'
    """
    return f"train-{number:05}.{suffix}"


class Columns(Protocol):
    """A second form of the same shard, such as Parquet."""

    def add(self, example: Example) -> None: ...
    def close(self) -> None: ...


class Shard:
    """One shard under a name of its own, until `publish`."""

    def __init__(self, folder: Path, number: int, *, with_text: bool) -> None:
        self.path = folder / shard_name(number)
        self.n_records = self.n_tokens = 0
        self._with_text = with_text
        self._beside = folder / f".{self.path.name}.part"
        try:
            make_folder(folder)
            self._file: BinaryIO = self._beside.open("wb", buffering=_BUFFER_BYTES)
        except OSError as error:
            raise storage_error(self.path, "write", error, then="merge again") from error

    def add(self, example: Example) -> None:
        try:
            self._file.write(line_of(example, with_text=self._with_text))
        except OSError as error:
            raise storage_error(self.path, "write", error, then="merge again") from error
        self.n_records += 1
        self.n_tokens += example.n_tokens

    def publish(self) -> dict[str, Any]:
        """Give the shard its name; return what the manifest says of it."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            n_bytes = self._file.tell()
            self._file.close()
            self._beside.replace(self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise storage_error(self.path, "write", error, then="merge again") from error
        return {
            "file": f"{self.path.parent.name}/{self.path.name}",
            "records": self.n_records,
            "tokens": self.n_tokens,
            "bytes": n_bytes,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._file.close()
            self._beside.unlink(missing_ok=True)


def read_state(folder: Path) -> dict[str, Any] | None:
    """Return what a broken merge has remembered, None if there is none or nobody can read it."""
    try:
        state = orjson.loads((folder / STATE).read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(folder / STATE, "read", error) from error
    except ValueError:
        return None
    return state if isinstance(state, dict) else None


def write_state(folder: Path, state: Mapping[str, object]) -> None:
    with replacing(folder / STATE) as file:
        file.write(orjson.dumps(state, option=orjson.OPT_NON_STR_KEYS))


def forget_state(folder: Path) -> None:
    try:
        (folder / STATE).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{folder / STATE} cannot be removed: {error}") from error
