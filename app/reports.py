"""`rejected.jsonl` and `failed.jsonl`: which samples have no answer, and why.

Owns the names and the fields of these two files; the reasons come from the ledger. Written whole,
so a reader sees the old report or the new one. Invariant: a report holds no prompt and no answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import orjson

from app.core.states import SampleState
from app.core.views import PartitionView
from app.errors import InputError
from app.files.prompts import scan
from app.files.replacing import replacing
from app.files.space import storage_error
from app.ledger.db import Ledger
from app.ledger.samples import SampleLine, with_state

REJECTED_NAME = "rejected.jsonl"
FAILED_NAME = "failed.jsonl"


def write_rejected(ledger: Ledger, partition: PartitionView, folder: Path) -> None:
    """Write what was never sent: id, index, replica, line, reason."""
    lines = _line_numbers(ledger, partition)
    rows = (
        {
            "id": sample.key,
            "index": sample.index,
            "replica": sample.replica,
            "line": lines.get(sample.index),
            "reason": sample.reason,
            "prompt_tokens": sample.prompt_tokens,
        }
        for sample in with_state(ledger, partition.id, SampleState.REJECTED)
    )
    _write(folder / REJECTED_NAME, rows)


def write_failed(ledger: Ledger, partition: PartitionView, folder: Path) -> None:
    """Write what was tried and given up: id, index, replica, attempts, reason."""
    _write(folder / FAILED_NAME, map(_failed, with_state(ledger, partition.id, SampleState.FAILED)))


def _failed(sample: SampleLine) -> dict[str, object]:
    return {
        "id": sample.key,
        "index": sample.index,
        "replica": sample.replica,
        "attempts": sample.attempts,
        "reason": sample.reason,
    }


def _line_numbers(ledger: Ledger, partition: PartitionView) -> dict[int, int]:
    """Return the line of each rejected record, as far as the prompt file can still be read.

    The ledger keeps record numbers only; they differ from lines where the file has blank ones.
    """
    wanted = {sample.index for sample in with_state(ledger, partition.id, SampleState.REJECTED)}
    if not wanted:
        return {}
    lines: dict[int, int] = {}
    last = max(wanted)
    try:
        for record in scan(Path(partition.prompts_path)):
            if record.index in wanted:
                lines[record.index] = record.line
            if record.index >= last:
                break
    except InputError:
        return lines  # the report stands without line numbers
    return lines


def _write(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write the rows; without any, no file is made, and one that is there becomes empty."""
    iterator: Iterator[Mapping[str, object]] = iter(rows)
    first = next(iterator, None)
    if first is None and not path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(path.parent, "make", error) from error
    with replacing(path) as file:
        if first is not None:
            file.write(orjson.dumps(first, option=orjson.OPT_APPEND_NEWLINE))
        for row in iterator:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
