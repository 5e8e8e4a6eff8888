"""A kept answer's line read whole: its ids, and which request made which of them.

Owns what must hold for a line's ids to be sent to a server again. `records` reads what a line says
of itself; this is for the few who need the answer.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from dataclasses import dataclass
from itertools import pairwise

import orjson

from app.core.types import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """An answer as its line says it; segments are in order, the first one from token 0.

    `text` and `finish_reason` as the server sent them, the text None where it was not.
    """

    rid: str
    prompt_sha256: str
    completion_tokens: int
    segments: tuple[Segment, ...]
    output_ids: array[int]
    text: str | None = None
    finish_reason: object = None


def read_kept(line: bytes) -> KeptAnswer | None:
    """Return the answer, None if the line is no record of ours or its parts do not agree."""
    try:
        fields = orjson.loads(line)
        answer = KeptAnswer(
            rid=fields["rid"],
            prompt_sha256=fields["prompt_sha256"],
            completion_tokens=fields["completion_tokens"],
            segments=tuple(_segment(each) for each in fields["segments"]),
            output_ids=array("I", fields["output_ids"]),
            text=fields.get("text"),
            finish_reason=fields.get("finish_reason"),
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    texts = (answer.rid, answer.prompt_sha256, answer.text or "")
    is_sound = all(isinstance(one, str) for one in texts) and _in_order(answer)
    return answer if is_sound else None


def _segment(value: dict[str, object]) -> Segment:
    from_token = value["from_token"]
    if type(from_token) is not int:
        raise TypeError(from_token)
    return Segment(
        from_token=from_token,
        rid=_text(value["rid"]),
        server=_text(value["server"]),
        gen_id=_text(value["gen_id"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _in_order(answer: KeptAnswer) -> bool:
    """Whether the segments begin at 0, go up, and none begins behind the answer's end."""
    starts = [each.from_token for each in answer.segments]
    is_rising = all(one < other for one, other in pairwise(starts))
    return bool(starts) and starts[0] == 0 and is_rising and starts[-1] <= len(answer.output_ids)
