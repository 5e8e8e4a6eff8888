"""Prompt files in Parquet: each row is a record of the same shapes as a line of JSON.

Owns the only import of pyarrow, an optional extra. Invariant: rows are read in small batches, and
a file that is damaged or cut short is an `InputError`, never a shorter run.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from app.errors import InputError
from app.files.prompt_records import Prompt, Rejected, parse_record

_BATCH_ROWS = 256


def scan_parquet(
    path: Path, on_progress: Callable[[int, int], None] | None = None
) -> Iterator[Prompt | Rejected]:
    """Yield every row; its `line` is the row number, from 1."""
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise InputError(
            f"{path} needs pyarrow to be read",
            hint='install it (pip install "longwatch[parquet]"), or convert the file to .jsonl',
        ) from error
    try:
        size_bytes = path.stat().st_size
        with parquet.ParquetFile(path) as file:
            index, n_rows = 0, file.metadata.num_rows
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                for row in batch.to_pylist():
                    yield parse_record(_without_nulls(row), index, index + 1)
                    index += 1
                if on_progress:
                    on_progress(size_bytes * index // n_rows, size_bytes)
        if on_progress:
            on_progress(size_bytes, size_bytes)
    except (ArrowException, ValueError) as error:
        raise InputError(
            f"{path} is damaged or cut short: {error}", hint="copy it again; nothing was started"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}", hint="check the path and its rights"
        ) from error


def _without_nulls(row: object) -> object:
    """Return the row without the fields that only other rows have: Parquet fills them with null."""
    if isinstance(row, dict):
        return {name: _without_nulls(value) for name, value in row.items() if value is not None}
    if isinstance(row, list):
        return [_without_nulls(value) for value in row]
    return row
