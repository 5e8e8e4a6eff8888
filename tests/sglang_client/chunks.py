"""Events of `/generate` as servers write them, and an answer fed with them.

Owns shapes only: `event` is one event's content, `stream` the bytes of several.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from app.sglang.stream import Answer

Json = dict[str, Any]
STOP: Json = {"type": "stop", "matched": 2}
ABORT: Json = {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
DONE = b"data: [DONE]\n\n"


def event(ids: object, n: int | None, finish: object = None, **more: object) -> Json:
    meta: Json = {"id": "r", "finish_reason": finish, "prompt_tokens": 3}
    if n is not None:
        meta["completion_tokens"] = n
    made: Json = {"output_ids": ids, "meta_info": meta}
    made.update(more)
    return made


def abort(ids: object, n: int | None, **reason: object) -> Json:
    return event(ids, n, {**ABORT, **reason})


def framed(content: object) -> bytes:
    body = content if isinstance(content, bytes) else orjson.dumps(content)
    return b"data: " + body + b"\n\n"


def stream(*events: object, done: bool = True) -> bytes:
    return b"".join(map(framed, events)) + (DONE if done else b"")


def cumulative(ids: Sequence[int], lengths: Sequence[int], finish: object = STOP) -> list[Json]:
    """Return events that hold all ids so far, up to each of the lengths."""
    events = [event(list(ids[:n]), n, text=_text(ids[:n])) for n in lengths]
    return [*events, event(list(ids), len(ids), finish, text=_text(ids))]


def incremental(ids: Sequence[int], lengths: Sequence[int], finish: object = STOP) -> list[Json]:
    """Return events that hold only what is new."""
    events, have = [], 0
    for n in lengths:
        events.append(event(list(ids[have:n]), n, text=_text(ids[have:n])))
        have = n
    return [*events, event(list(ids[have:]), len(ids), finish, text=_text(ids[have:]))]


def _text(ids: Sequence[int]) -> str:
    return "".join(f"<{token}>" for token in ids)


def fed(*chunks: bytes, **how: Any) -> Answer:
    """Feed an answer as the client does: until it is over."""
    answer = Answer(**how)
    for chunk in chunks:
        answer.feed(chunk)
        if answer.is_over:
            break
    return answer


def read(*events: object, done: bool = True, **how: Any) -> Answer:
    """Feed each event as a chunk of its own, then the end mark."""
    chunks = [*map(framed, events), *([DONE] if done else [])]
    return fed(*chunks, **how)
