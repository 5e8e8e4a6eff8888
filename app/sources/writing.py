"""The files of one prepared partition while they are written, and the shape of their lines.

Owns the draft folder `.preparing-<pid>` inside the partition's own, so that nobody takes half a
file for a whole one; how the files get their place is `publishing`.

`kept.jsonl` has a line for each record, in the same order: `{row, file, line, characters, sha256?,
flags?}` (`row` from 0 over all files of the source, `line` from 1 in its file; `sha256`, the first
16 hex digits of the content's, where it made the id or where partitions are compared).
`skipped.jsonl` has `{row, file, line, reason, detail, of?}`.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from app.files.appending import make_folder
from app.files.space import storage_error
from app.sources.contract import SkipReason

KEPT, SKIPPED, REPORT = "kept.jsonl", "skipped.jsonl", "report.json"
_DRAFT = re.compile(r"\.preparing-\d+")
_BUFFER_BYTES = 1 << 18
_DIGITS = 16


class Skip(NamedTuple):
    """A row that became no record. `of` is the row it repeats, or `partition/id` of another's."""

    row: int
    file: str
    line: int
    reason: SkipReason
    detail: str = ""
    of: int | str | None = None


class Draft(NamedTuple):
    """The files that are being written. A record and its place go together, always."""

    records: BinaryIO
    kept: BinaryIO
    skipped: BinaryIO

    def skip(self, one: Skip) -> None:
        told = one._asdict()
        if one.of is None:
            del told["of"]
        self.skipped.write(orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE))


def record_line(key: str, messages: bytes, functions: bytes, end: bytes) -> bytes:
    """Return the line of a record from its parts as JSON; `functions` may be empty."""
    parts = [b'{"id":', orjson.dumps(key), b',"messages":', messages]
    if functions:
        parts += [b',"tools":', functions]
    parts.append(end)
    return b"".join(parts)


def place_line(
    place: tuple[int, str, int], n_characters: int, digest: str, flags: tuple[str, ...]
) -> bytes:
    """Return the line of `kept.jsonl`; `place` is the row, the file's label as JSON, the line."""
    row, label, line = place
    more = f',"sha256":"{digest}"' if digest else ""
    if flags:
        more += f',"flags":{orjson.dumps(flags).decode()}'
    return (
        f'{{"row":{row},"file":{label},"line":{line},"characters":{n_characters}{more}}}\n'.encode()
    )


def digest_of(messages: bytes, functions: bytes) -> str:
    """Return the first 64 bits of the content's SHA-256 in hex digits."""
    content = b"%b\0%b" % (messages, functions) if functions else messages
    return sha256(content).hexdigest()[:_DIGITS]


def draft_folder(partition: Path, pid: int) -> Path:
    """Return where the process with that id, a whole preparation's, writes a partition."""
    return partition / f".preparing-{pid}"


@contextmanager
def drafting(folder: Path, records: str) -> Iterator[Draft]:
    """Give the files of a draft to write; `records` is the name that the records' will have."""
    try:
        make_folder(folder)
        with ExitStack() as stack:
            files = [
                stack.enter_context((folder / name).open("wb", buffering=_BUFFER_BYTES))
                for name in (records, KEPT, SKIPPED)
            ]
            yield Draft(*files)
    except OSError as error:
        raise storage_error(folder / records, "write", error, then="prepare again") from error


def remove_drafts(partition: Path) -> None:
    """Remove what this and broken attempts have left in a partition's folder."""
    with suppress(OSError):
        for entry in partition.iterdir():
            if _DRAFT.fullmatch(entry.name):
                shutil.rmtree(entry, ignore_errors=True)
