"""One answer as one line of JSON, and what recovery reads back from it.

Owns the keys of a record and their order: `rid` first, so that a line can be matched with an
attempt without reading the ids behind it. Does not write files.
Invariant: every line is strict JSON in UTF-8 and ends with the only 0x0A in it.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import orjson

from app.clock import iso, to_ms
from app.core.types import Segment

_RID_START = b'{"rid":"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything that an answer's line says. `replica` is None unless prompts run several times.

    `turn` is None for the first, or only, turn of a conversation.

    `finish_reason`: compact JSON where the server sent an object, else its word. `reasoning_end`:
    index in `output_ids` of the mark that closes the reasoning; None if there is no reasoning, if
    it was never closed, or if nobody told the marks. Lines of earlier versions do not have it.
    """

    rid: str
    key: str
    index: int
    replica: int | None = None
    turn: int | None = None
    partition: str
    status: str
    finish_reason: str | None
    flags: tuple[str, ...] = ()
    reasoning_end: int | None = None
    prompt_tokens: int
    completion_tokens: int
    max_new_tokens: int
    attempts: int
    segments: tuple[Segment, ...] = ()
    gen_id: str
    started_at: datetime | None
    finished_at: datetime | None
    prompt_sha256: str
    text: str | None
    output_ids: "array[int]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLine:
    """What a line says of itself, without the answer."""

    rid: str
    key: str
    index: int
    replica: int
    status: str
    finish_reason: str | None
    flags: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int
    max_new_tokens: int
    attempts: int
    gen_id: str
    prompt_sha256: str
    finished_at_ms: int | None


def encode(record: Record) -> bytes:
    """Return the record as one line."""
    fields: dict[str, object] = {"rid": record.rid, "id": record.key, "index": record.index}
    if record.replica is not None:
        fields["replica"] = record.replica
    if record.turn is not None:
        fields["turn"] = record.turn
    fields |= {
        "partition": record.partition,
        "status": record.status,
        "finish_reason": _as_sent(record.finish_reason),
        "flags": record.flags,
        "reasoning_end": record.reasoning_end,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "max_new_tokens": record.max_new_tokens,
        "attempts": record.attempts,
        "segments": [_segment_fields(one) for one in record.segments],
        "gen_id": record.gen_id,
        "started_at": record.started_at and iso(record.started_at),
        "finished_at": record.finished_at and iso(record.finished_at),
        "prompt_sha256": record.prompt_sha256,
        "text": record.text,
        "output_ids": record.output_ids.tolist(),
    }
    try:
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # Half a surrogate pair: no UTF-8 can say it. The ids are the truth, the text is a reading.
        fields["text"] = _speakable(record.text)
        fields["finish_reason"] = _as_sent(_speakable(record.finish_reason))
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def line_rid(line: bytes) -> str | None:
    """Return the request id by a look at the first bytes, None if the line is not ours."""
    if not line.startswith(_RID_START):
        return None
    end = line.find(b'"', len(_RID_START))
    rid = line[len(_RID_START) : end]
    return rid.decode() if end > 0 and rid.isascii() and b"\\" not in rid else None


def parse(line: bytes) -> ParsedLine | None:
    """Return what a whole line says, None if it is not a record of ours (torn, zeroed, foreign)."""
    try:
        fields = orjson.loads(line)
        return ParsedLine(
            rid=_text(fields["rid"]),
            key=_text(fields["id"]),
            index=_whole(fields["index"]),
            replica=_whole(fields.get("replica", 0)),
            status=_text(fields["status"]),
            finish_reason=_compact(fields["finish_reason"]),
            flags=tuple(fields["flags"]),
            prompt_tokens=_whole(fields["prompt_tokens"]),
            completion_tokens=_whole(fields["completion_tokens"]),
            max_new_tokens=_whole(fields["max_new_tokens"]),
            attempts=_whole(fields["attempts"]),
            gen_id=_text(fields["gen_id"]),
            prompt_sha256=_text(fields["prompt_sha256"]),
            finished_at_ms=_moment_ms(fields.get("finished_at")),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _segment_fields(segment: Segment) -> Mapping[str, object]:
    return {
        "from_token": segment.from_token,
        "rid": segment.rid,
        "server": segment.server,
        "gen_id": segment.gen_id,
    }


def _as_sent(finish_reason: str | None) -> object:
    """Return the reason as the server sent it: an object from its compact JSON, or a word."""
    if finish_reason is None or not finish_reason.startswith("{"):
        return finish_reason
    return orjson.Fragment(finish_reason)


def _compact(finish_reason: object) -> str | None:
    if isinstance(finish_reason, dict):
        return orjson.dumps(finish_reason).decode()
    return None if finish_reason is None else _text(finish_reason)


def _speakable(text: str | None) -> str | None:
    return (
        None if text is None else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


def _moment_ms(text: object) -> int | None:
    """Return ms since 1970, None for what is not a moment: the line counts all the same."""
    try:
        return to_ms(datetime.fromisoformat(text)) if isinstance(text, str) else None
    except (ValueError, TypeError):  # a time without an offset is no moment either
        return None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value
