"""Lines of an earlier script's answers: an id or an index, and token ids or a text.

Owns which fields are looked for and what a line without them is. Reads plain and packed files from
their beginning, one line at a time; never writes. Invariant: a last line that was cut in the middle
is told as torn, never as an answer; every other line is told, whatever is in it.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from app.core.adopting import Found, Left
from app.files.prompt_records import Prompt, kind_of, parse_record
from app.files.prompt_streams import unpacked

MAX_LINE_BYTES = 64 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The names of a line's fields, the first that is there; () looks for none.

    `by_index`: a sample is meant by its record number and not by its id.
    """

    by_index: bool = False
    id: tuple[str, ...] = ("id",)
    index: tuple[str, ...] = ("index", "idx")
    ids: tuple[str, ...] = ("output_ids",)
    text: tuple[str, ...] = ("response", "text", "output")
    finish: tuple[str, ...] = ("finish_reason",)
    prompt: tuple[str, ...] = ("prompt", "messages", "conversations")


class Earlier(NamedTuple):
    """A line that means a sample: by `key`, or by `index` where that is None."""

    number: int
    key: str | None
    index_of_record: int
    replica: int
    found: Found


class Skipped(NamedTuple):
    """A line that means none; `shown` is what of it helps to find the fault."""

    number: int
    why: Left
    shown: str


class Read(NamedTuple):
    """A line, and how many bytes of the file (packed, if it is) were read with it."""

    line: Earlier | Skipped
    n_bytes: int


def earlier_lines(path: Path, fields: Fields) -> Iterator[Read]:
    """Yield every line that is not blank; InputError if the file cannot be opened or unpacked."""
    number = 0
    with unpacked(path) as (lines, raw):
        while line := lines.readline(MAX_LINE_BYTES):
            number += 1
            is_whole = line.endswith(b"\n")
            is_too_long = not is_whole and len(line) == MAX_LINE_BYTES
            while not is_whole and (more := lines.readline(MAX_LINE_BYTES)):
                is_whole = more.endswith(b"\n")
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if is_too_long:
                shown = f"it is longer than {MAX_LINE_BYTES:,} bytes"
                yield Read(Skipped(number, Left.UNREADABLE, shown), raw.tell())
            elif line and not line.isspace():
                yield Read(_read(line, number, fields, is_whole=is_whole), raw.tell())


def _read(line: bytes, number: int, fields: Fields, *, is_whole: bool) -> Earlier | Skipped:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if not is_whole:
            return Skipped(number, Left.TORN, f"{len(line):,} bytes without an end")
        return Skipped(number, Left.UNREADABLE, f"broken JSON at character {error.pos + 1}")
    if not isinstance(record, dict):
        return Skipped(number, Left.UNREADABLE, f"{kind_of(record)}, not an object")
    meant = _meant(record, fields)
    if meant is None:
        names = ", ".join(list(record)[:8])
        return Skipped(number, Left.NO_ID, f"its fields are {names}"[:_SHOWN])
    found = _found(record, fields)
    if isinstance(found, str):
        return Skipped(number, Left.BAD_IDS, found)
    return Earlier(number, *meant, found)


def _first(record: Mapping[str, object], names: tuple[str, ...]) -> object:
    """Return the first value that is there and not null."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def _meant(record: Mapping[str, object], fields: Fields) -> tuple[str | None, int, int] | None:
    """Return key, record number and replica of the sample that a line means."""
    replica = record.get("replica", 0)
    replica = replica if type(replica) is int else 0
    if fields.by_index:
        index = _first(record, fields.index)
        index = int(index) if isinstance(index, str) and index.isdecimal() else index
        return (None, index, replica) if type(index) is int else None
    key = _first(record, fields.id)
    if type(key) is int or (isinstance(key, str) and key):
        return str(key), -1, replica
    return None


def _found(record: Mapping[str, object], fields: Fields) -> Found | str:
    """Return the answer, or what is wrong with its ids."""
    given, text = _first(record, fields.ids), _first(record, fields.text)
    ids = None if given is None else _ids(given)
    if isinstance(ids, str):
        return ids
    return Found(
        ids=ids or None,
        text=text if isinstance(text, str) and _is_unicode(text) else None,
        finish_reason=_first(record, fields.finish),
        prompt_sha256s=tuple(_digests(record, fields)),
        gen_id=_text(record.get("gen_id")),
    )


def _ids(given: object) -> array[int] | str:
    if not isinstance(given, list):
        return f"the ids are {kind_of(given)}, not a list"
    if given and set(map(type, given)) != {int}:
        return "the ids hold something else than whole numbers"
    try:
        return array("I", given)
    except OverflowError:
        return "the ids hold a number below 0 or of 2^32 and more"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _digests(record: Mapping[str, object], fields: Fields) -> Iterator[str]:
    """Give the digests that the line's prompt has in each shape which it may have had here.

    A prompt told as ids, or as something that no prompt file may hold, cannot be compared.
    """
    if own := _text(record.get("prompt_sha256")):
        yield own
        return
    told = _first(record, fields.prompt)
    shapes: list[dict[str, object]] = []
    if isinstance(told, str):
        shapes = [{"text": told}, {"messages": [{"role": "user", "content": told}]}]
    elif isinstance(told, list) and told and isinstance(told[0], dict):
        shapes = [{"messages": told}, {"conversations": told}]
    own_settings = {name: record[name] for name in ("tools", "sampling_params") if name in record}
    for shape in shapes:
        for more in ({}, own_settings) if own_settings else ({},):
            prompt = parse_record({**shape, **more}, 0, 0)
            if isinstance(prompt, Prompt):
                yield prompt.prompt_sha256
