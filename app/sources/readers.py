"""Source files to rows, one after another: JSON lines, JSON, CSV; tables are `tables`.

Owns which kinds of files there are and how text files are read. Invariants: every line that is not
blank, and every row, comes out once, as a row or as `Unreadable`, with its number from 1; a file
that is damaged or cut short is an `InputError` that names it, never fewer rows. Memory holds one
line of JSON lines or CSV; a JSON array is read as a whole (up to 2 GB, several times that of
memory), so a large one is better converted.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from app.errors import InputError
from app.files.prompt_records import kind_of, unreadable, unwritable
from app.files.prompt_streams import unpacked
from app.files.prompts import MAX_LINE_BYTES, lines_of, rest_of_too_long

TEXT_KINDS = (".jsonl", ".json", ".csv")
TABLE_KINDS = (".parquet", ".arrow")
PACKINGS = (".gz", ".zst")
MAX_ARRAY_BYTES = 2 << 30
_LOOK_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Unreadable(NamedTuple):
    """A line, or a row, that is none; `detail` holds nothing of its content."""

    detail: str


class Position:
    """How far a source is read, in bytes of its files as they lie on the disk."""

    def __init__(self) -> None:
        self._n_bytes_before = 0
        self.of_file: Callable[[], int] = int

    def start(self, n_bytes_before: int) -> None:
        """Begin another file, behind files of so many bytes."""
        self._n_bytes_before, self.of_file = n_bytes_before, int

    def tell(self) -> int:
        try:
            return self._n_bytes_before + self.of_file()
        except ValueError:  # the file is read to its end and closed
            return self._n_bytes_before


Numbered = tuple[int, object]  # line or row of the file, from 1; a dict, or Unreadable


def kind_of_file(name: str) -> str | None:
    """Return the ending that says how a file is read, None if no kind of ours has it.

    >>> kind_of_file("rows.jsonl.gz"), kind_of_file("rows.parquet"), kind_of_file("rows.tar.gz")
    ('.jsonl', '.parquet', None)
    """
    lower = name.lower()
    bare = next((lower.removesuffix(one) for one in PACKINGS if lower.endswith(one)), lower)
    kinds = TEXT_KINDS if bare != lower else TEXT_KINDS + TABLE_KINDS
    return next((kind for kind in kinds if bare.endswith(kind)), None)


def read_rows(path: Path, position: Position) -> Iterator[Numbered]:
    """Yield every row of a file; InputError if it cannot be read to its end."""
    kind = kind_of_file(path.name)
    if kind in TABLE_KINDS:
        from app.sources.tables import read_table  # noqa: PLC0415 - an optional extra

        return read_table(path, position)
    if kind == ".csv":
        return _csv_rows(path, position)
    return _json_lines(path, position) if _is_lines(path, kind) else _json_array(path, position)


def problem_of(row: object) -> str:
    """Return why something that is no dict is no row."""
    return row.detail if isinstance(row, Unreadable) else f"{kind_of(row)}, not an object"


def _is_lines(path: Path, kind: str | None) -> bool:
    """Return whether a JSON file has one object per line, whatever its name says."""
    if kind == ".jsonl":
        return True
    with unpacked(path) as (stream, _):
        first = stream.read(_LOOK_BYTES).removeprefix(_BYTE_ORDER_MARK).lstrip()
    if not first:
        return True
    line = first.partition(b"\n")[0].rstrip()
    is_cut = len(line) == len(first)
    if first.startswith(b"{") and (is_cut or line.endswith(b"}")):
        return True
    if first.startswith(b"["):
        return False
    raise InputError(
        f"{path} is neither a JSON array of rows nor one object per line",
        hint="convert it to .jsonl",
    )


def _json_lines(path: Path, position: Position) -> Iterator[Numbered]:
    loads = orjson.loads
    with unpacked(path) as (lines, raw):
        position.of_file = raw.tell
        number = 0
        for line in lines_of(lines):
            number += 1
            try:
                row = loads(line)
            except orjson.JSONDecodeError as error:
                if not line.isspace():  # what is blank parses as little, and is met more seldom
                    yield number, _bad_line(line, lines, error)
                continue
            yield number, row


def _bad_line(line: bytes, lines: BinaryIO, error: orjson.JSONDecodeError) -> Unreadable:
    if len(line) >= MAX_LINE_BYTES and not line.endswith(b"\n"):
        return Unreadable(rest_of_too_long(lines))
    return Unreadable(unreadable(line, error)[1])


def _json_array(path: Path, position: Position) -> Iterator[Numbered]:
    with unpacked(path) as (stream, raw):
        text = stream.read(MAX_ARRAY_BYTES + 1).removeprefix(_BYTE_ORDER_MARK)
        position.of_file = raw.tell
    if len(text) > MAX_ARRAY_BYTES:
        raise InputError(
            f"{path} is a JSON array of more than {MAX_ARRAY_BYTES >> 30} GB",
            hint="convert it to .jsonl, which is read line by line",
        )
    try:
        rows, is_checked = orjson.loads(text), True
    except orjson.JSONDecodeError as error:
        rows, is_checked = _by_standard_library(path, text, error), False
    del text
    if not isinstance(rows, list):
        raise InputError(f"{path} is {kind_of(rows)}, not a JSON array", hint="convert it")
    for number, row in enumerate(rows, start=1):
        problem = None if is_checked else unwritable(row)
        yield number, row if problem is None else Unreadable(problem)


def _by_standard_library(path: Path, text: bytes, error: orjson.JSONDecodeError) -> object:
    """Return what only the other parser takes: NaN and halves of surrogate pairs."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    raise InputError(
        f"{path} is broken JSON at character {error.pos + 1}: {error.msg}", hint="copy it again"
    ) from error


def _csv_rows(path: Path, position: Position) -> Iterator[Numbered]:
    csv.field_size_limit(MAX_LINE_BYTES)
    with unpacked(path) as (stream, raw):
        position.of_file = raw.tell
        # bytes that are no UTF-8 come as lone surrogates, so that only their row is lost
        text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
        rows = csv.reader(text, strict=True)
        header = _header(path, rows)
        while True:
            line = rows.line_num + 1
            try:
                fields = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                if "unexpected end" in str(error):
                    raise InputError(
                        f"{path} is damaged or cut short: a quote in line {line} is never closed",
                        hint="copy it again, or mend that line",
                    ) from error
                yield line, Unreadable(f"no CSV: {error}")
                continue
            if fields:
                yield line, _csv_row(header, fields)


def _header(path: Path, rows: Iterator[list[str]]) -> list[str]:
    try:
        header = next(rows, [])
    except csv.Error as error:
        raise InputError(f"the first line of {path} is no CSV: {error}", hint="mend it") from error
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise InputError(
            f'{path} has the column "{repeated[0]}" twice', hint="rename one in the first line"
        )
    return header


def _csv_row(header: list[str], fields: list[str]) -> object:
    if len(fields) != len(header):
        return Unreadable(f"{len(fields)} fields, the first line has {len(header)}")
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return Unreadable("not valid Unicode: bytes that are not UTF-8")
    return dict(zip(header, fields, strict=True))
