"""The files of merged records: shard after shard, and what is remembered between two.

Owns their names and `.merging.json`, which holds where the next shard begins, so that a broken
merge goes on behind the last whole one. Invariant: records get their file by their own lengths
alone, so that a merge that went on gives the same bytes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from app.errors import StorageError
from app.export.parts import LineFile
from app.export.records import Example, line_of
from app.files.replacing import replacing
from app.files.space import storage_error

STATE = ".merging.json"


def shard_name(number: int, suffix: str = "jsonl") -> str:
    """Return the name of a shard, from 0.

    >>> shard_name(3)
    'train-00003.jsonl'
    """
    return f"train-{number:05}.{suffix}"


class Shard(LineFile):
    """One shard of records."""

    def __init__(self, folder: Path, number: int, *, with_text: bool) -> None:
        super().__init__(folder / shard_name(number))
        self.n_records = self.n_tokens = 0
        self._with_text = with_text

    def add(self, example: Example) -> None:
        self.write(line_of(example, with_text=self._with_text))
        self.n_records += 1
        self.n_tokens += example.n_tokens

    def publish(self) -> dict[str, Any]:
        """Give the shard its name; return what the manifest says of it."""
        n_bytes = self.close()
        return {
            "file": f"{self.path.parent.name}/{self.path.name}",
            "records": self.n_records,
            "tokens": self.n_tokens,
            "bytes": n_bytes,
        }


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
