"""The answers that a dataset had already, as `longwatch prepare` has left them in `answers.jsonl`.

Owns the reading of those records and which of their turns become examples: each answer of a
conversation, prompted with all that stands before it. Changes nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from app.errors import InputError, ServerError
from app.export.choosing import Choice, Drop, Finish
from app.export.encoding import Encoded, Encoder, Turn
from app.export.generated import Row
from app.export.records import Example
from app.files.space import storage_error
from app.sources.contract import Message

ANSWERS_FILE = "answers.jsonl"
_BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """One partition of answers. `writes_calls`: turns that call can be written."""

    name: str
    path: Path
    source: str
    writes_calls: bool

    @property
    def gen_id(self) -> str:
        return f"existing:{self.name}"


class _Wanted(NamedTuple):
    """A turn on its way to its ids."""

    key: str
    native: str
    turn: Turn
    position: int


def find_existing(folder: Path, *, writes_calls: bool) -> list[Existing]:
    """Return the partitions with answers below a folder of `longwatch prepare`."""
    found = sorted(folder.glob(f"*/{ANSWERS_FILE}"))
    if not found:
        raise InputError(
            f"{folder} has no partition with {ANSWERS_FILE}",
            hint="name the output folder of longwatch prepare",
        )
    return [
        Existing(
            name=path.parent.name,
            path=path,
            source=source_of(path.parent),
            writes_calls=writes_calls,
        )
        for path in found
    ]


def source_of(partition: Path) -> str:
    """Return what the report of `longwatch prepare` says a partition is from, "" without one."""
    try:
        sources = orjson.loads((partition / "report.json").read_bytes())["sources"]
        return ", ".join(str(each.get("hub") or each.get("file") or "") for each in sources)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


def existing_rows(
    existing: Existing, encoder: Encoder, choice: Choice, after: int
) -> Iterator[Row]:
    """Yield every supervised turn behind a position; positions count turns over the file.

    Raises InputError with file and line for what is no record of `longwatch prepare`.
    """
    turns = (each for each in _turns(existing.path) if each.position > after)
    while batch := list(islice(turns, _BATCH)):
        encodable = [each for each in batch if existing.writes_calls or not _calls(each.turn)]
        ids = dict(
            zip(
                (each.position for each in encodable),
                encoder.encode([each.turn for each in encodable]),
                strict=True,
            )
        )
        for each in batch:
            found = ids.get(each.position)
            yield Row(each.position, _row(existing, each, found, choice))


def _row(
    existing: Existing, wanted: _Wanted, encoded: Encoded | ServerError | None, choice: Choice
) -> Example | Drop:
    if encoded is None:
        return Drop.TOOL_CALLS
    if isinstance(encoded, ServerError):
        return Drop.PROMPT
    finish = Finish.TOOL if _calls(wanted.turn) else Finish.STOP
    prompt, answer, reasoning, stop_id = encoded
    dropped = choice.drop(
        status="ok", finish=finish, flags=(), prompt=len(prompt), output=len(answer)
    )
    return dropped or Example(
        partition=existing.name,
        key=wanted.key,
        native=wanted.native,
        source=existing.source,
        prompt=prompt,
        answer=answer,
        finish=finish,
        stop_id=stop_id,
        is_regenerated=False,
        reasoning=reasoning,
        prompt_sha256=sha256(orjson.dumps([wanted.turn.before, wanted.turn.tools])).hexdigest(),
        flags=(),
        gen_id=existing.gen_id,
        metadata={},
        text=_text(wanted.turn.said),
        before=wanted.turn.before,
    )


def _text(said: Message) -> str:
    """Return an answer as text, reasoning inline as models write it."""
    content, reasoning = str(said.get("content") or ""), said.get("reasoning_content")
    return f"<think>{reasoning}</think>{content}" if reasoning else content


def _calls(turn: Turn) -> bool:
    return bool(turn.said.get("tool_calls"))


def _turns(path: Path) -> Iterator[_Wanted]:
    position = 0
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                record = _record(line, path, number)
                messages: Sequence[Message] = record["messages"]
                answers = [at for at, said in enumerate(messages) if said["role"] == "assistant"]
                for number_of_turn, at in enumerate(answers, 1):
                    native = record["id"]
                    yield _Wanted(
                        native if number_of_turn == 1 else f"{native}#turn{number_of_turn}",
                        native,
                        Turn(list(messages[:at]), record.get("tools"), messages[at]),
                        position,
                    )
                    position += 1
    except OSError as error:
        raise storage_error(path, "read", error) from error


def _record(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
        is_ours = isinstance(record["id"], str) and all(
            isinstance(said["role"], str) for said in record["messages"]
        )
    except (ValueError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise InputError(
            f"{path}, line {number}: this is no record of longwatch prepare",
            hint="prepare that source again",
        )
    return dict(record)
