"""Source files of Apache Arrow: Parquet, and Arrow's own file and stream form.

Owns the import of pyarrow, an optional extra, for sources. Invariants: rows are read in small
batches; a file that is damaged or cut short is an `InputError`; a row that cannot be turned into
values (text that is not UTF-8) is `Unreadable`, and the others are read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.errors import InputError
from app.sources.readers import Numbered, Position, Unreadable

_BATCH_ROWS = 256
_BUFFER_BYTES = 1 << 20
_ARROW_FILE = b"ARROW1"
_STREAM_END = b"\0\0\0\0"


def need_pyarrow(path: Path) -> Any:
    """Return pyarrow; InputError says how to get it."""
    try:
        import pyarrow  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise InputError(
            f"{path} needs pyarrow to be read",
            hint='install it (pip install "longwatch[parquet]"), or convert the file to .jsonl',
        ) from error
    return pyarrow


def read_table(path: Path, position: Position) -> Iterator[Numbered]:
    """Yield every row with its number, from 1."""
    pyarrow = need_pyarrow(path)
    with _errors_named(path, pyarrow):
        if path.suffix.lower() == ".parquet":
            yield from _parquet_rows(path, position)
        else:
            yield from _arrow_rows(path, position, pyarrow)


@contextmanager
def _errors_named(path: Path, pyarrow: Any) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, ValueError) as error:
        raise InputError(
            f"{path} is damaged or cut short: {error}", hint="copy it again"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}", hint="check the path and its rights"
        ) from error


def _parquet_rows(path: Path, position: Position) -> Iterator[Numbered]:
    from pyarrow import parquet  # noqa: PLC0415 - an optional extra

    size_bytes = path.stat().st_size
    done = _Share(size_bytes)
    position.of_file = done.bytes
    # with a buffer a column is read as it is needed, not a whole row group at once
    with parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES) as file:
        done.of = file.metadata.num_rows
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            yield from numbered(batch, done.rows)
            done.rows += batch.num_rows


def _arrow_rows(path: Path, position: Position, pyarrow: Any) -> Iterator[Numbered]:
    from pyarrow import ipc  # noqa: PLC0415 - an optional extra

    with path.open("rb") as raw:
        is_file = raw.read(len(_ARROW_FILE)) == _ARROW_FILE
        raw.seek(0, 2)
        if not is_file and raw.tell() >= len(_STREAM_END):
            raw.seek(-len(_STREAM_END), 2)
            if raw.read() != _STREAM_END:  # the library takes a missing end for the end
                raise ValueError("the stream has no end mark")
    n_rows = 0
    with pyarrow.memory_map(str(path)) as mapped:
        position.of_file = mapped.tell
        opened = ipc.open_file(mapped) if is_file else ipc.open_stream(mapped)
        with opened as reader:
            batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            for batch in batches:
                for start in range(0, batch.num_rows, _BATCH_ROWS):
                    yield from numbered(batch.slice(start, _BATCH_ROWS), n_rows + start)
                n_rows += batch.num_rows


def numbered(batch: Any, n_before: int) -> Iterator[Numbered]:
    """Yield the rows of a batch, or table, behind so many others."""
    try:
        rows: list[object] = batch.to_pylist()
    except ValueError:
        rows = [_one_row(batch.slice(index, 1)) for index in range(batch.num_rows)]
    yield from enumerate(rows, start=n_before + 1)


def _one_row(batch: Any) -> object:
    try:
        rows: list[object] = batch.to_pylist()
    except ValueError as error:
        what = "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        return Unreadable(f"not readable: {what}")
    return rows[0]


class _Share:
    """Rows done of all, as bytes of the file."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self.rows, self.of = 0, 1

    def bytes(self) -> int:
        return self._size_bytes * self.rows // max(1, self.of)
