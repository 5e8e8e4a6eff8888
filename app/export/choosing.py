"""Which answers become training data, and the words for why one does not. Pure.

Invariant: a sample is kept or has exactly one reason; the reasons of a merge add up with what was
kept to the samples that there are.
"""

from dataclasses import dataclass
from enum import StrEnum


class Finish(StrEnum):
    """How an answer ended, in the trainers' words."""

    STOP = "stop"
    LENGTH = "length"
    TOOL = "tool"


class Drop(StrEnum):
    """Why a sample becomes no record. States that are no answers stand under their own name."""

    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    REJECTED = "rejected"
    EMPTY = "empty"
    SUSPECT = "suspect"
    FINISH = "finish_reason"
    TOO_LONG = "too_long"
    TOO_SHORT = "too_short"
    FLAG = "flag"
    TOOL_CALLS = "tool_calls_not_encoded"
    NO_ANSWER = "no_answer"
    PROMPT = "prompt_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is wanted of the answers. Lengths in tokens; `max_length` of prompt and answer."""

    finish: frozenset[Finish] = frozenset(Finish)
    with_status: frozenset[str] = frozenset()  # of `suspect` and `empty`, which are dropped else
    without_flags: frozenset[str] = frozenset()
    max_length: int | None = None
    min_output: int = 1

    def drop(
        self, *, status: str, finish: Finish, flags: tuple[str, ...], prompt: int, output: int
    ) -> Drop | None:
        """Return why an answer is dropped, None if it is wanted. The first reason counts."""
        if status in (Drop.SUSPECT, Drop.EMPTY) and status not in self.with_status:
            return Drop(status)
        if finish not in self.finish:
            return Drop.FINISH
        if not self.without_flags.isdisjoint(flags):
            return Drop.FLAG
        if output < self.min_output:
            return Drop.TOO_SHORT
        if self.max_length is not None and prompt + output > self.max_length:
            return Drop.TOO_LONG
        return None


def finish_of(reason: object) -> tuple[Finish, int | None, str | None] | None:
    """Return how an answer ended, the id and the text that it stopped at; None for an abort.

    `reason` is what the server sent: an object with `type` and `matched`, or its word.

    >>> finish_of({"type": "stop", "matched": 2})
    (<Finish.STOP: 'stop'>, 2, None)
    >>> finish_of({"type": "abort"}) is None
    True
    """
    kind = reason.get("type") if isinstance(reason, dict) else reason
    matched = reason.get("matched") if isinstance(reason, dict) else None
    at_id = matched if type(matched) is int else None
    at_text = matched if isinstance(matched, str) else None
    if kind in ("tool_calls", "tool"):
        return Finish.TOOL, at_id, at_text
    if kind in (Finish.STOP, Finish.LENGTH):
        return Finish(str(kind)), at_id, at_text
    return None
