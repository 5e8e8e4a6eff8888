"""What can be read off the ids of a finished answer, and its finish reason as text.

Owns the small checks that `outcome.py` decides by: empty, cut short by the server, thinking left
open. Ids are the truth; text is never looked at.
"""

from __future__ import annotations  # array[int] cannot be written at run time before 3.12

import json
from array import array
from dataclasses import dataclass

# how the reason of an attempt begins whose prompt the server changed; told by it later # srv-14
PROMPTED_WITH = "the server was prompted with"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The token ids that open and close thinking, where the model has them."""

    opening: int | None
    closing: int | None
    opened_by_prompt: bool


def is_empty(answer: array[int], end_token_ids: frozenset[int]) -> bool:
    """Whether the answer has no real token: none, or only such as end an answer."""
    return all(token in end_token_ids for token in answer)


def thinking_is_open(answer: array[int], marks: Marks) -> bool:
    """Whether the last mark in the answer opens thinking, or the prompt did and none follows."""
    if marks.closing is None:
        return False
    for token in reversed(answer):
        if token == marks.closing:
            return False
        if token == marks.opening:
            return True
    return marks.opened_by_prompt


def is_clipped(finish_reason: object, n_held: int, n_new: int, max_new_tokens: int) -> bool:
    """Whether the server ended an answer by a lower length than was asked for.

    Servers name the length that they applied, to this request's new tokens; without the name the
    tokens are counted.
    """
    named = finish_reason.get("length") if isinstance(finish_reason, dict) else None
    applied = named if isinstance(named, int) else n_new
    return n_held + applied < max_new_tokens


def compact(finish_reason: object, n_held: int = 0) -> str:
    """Return the raw finish reason as one short line: a plain string as it is, else JSON.

    The length that a server names counts its own request's tokens; for a continued answer the
    held ones are added, so that it is the answer's.
    """
    if isinstance(finish_reason, str):
        return finish_reason
    if isinstance(finish_reason, dict) and isinstance(finish_reason.get("length"), int):
        finish_reason = {**finish_reason, "length": finish_reason["length"] + n_held}
    return json.dumps(finish_reason, separators=(",", ":"), default=str)


def ended_by_length(compacted: str) -> bool:
    """Return whether a finish reason, as `compact` writes it, says that a length ended the answer.

    >>> ended_by_length('{"type":"length","length":64}'), ended_by_length("stop")
    (True, False)
    """
    try:
        raw = json.loads(compacted)
    except ValueError:
        raw = compacted
    return (raw.get("type") if isinstance(raw, dict) else raw) == "length"


def text_ids(answer: array[int], finish_reason: object) -> array[int]:
    """Return the ids whose text is the answer's: without the id that ended it, if one did."""
    matched = finish_reason.get("matched") if isinstance(finish_reason, dict) else None
    ended_by_id = isinstance(matched, int) and len(answer) > 0 and answer[-1] == matched
    return answer[:-1] if ended_by_id else answer


def trimmed_text(text: str, finish_reason: object) -> str:
    """Return the text without the stop string that ended it, as a server trims an answer.

    >>> trimmed_text("so it ends###", {"type": "stop", "matched": "###"})
    'so it ends'
    """
    matched = finish_reason.get("matched") if isinstance(finish_reason, dict) else None
    if not isinstance(matched, str) or not matched:
        return text
    at = text.rfind(matched)
    return text if at < 0 else text[:at]
