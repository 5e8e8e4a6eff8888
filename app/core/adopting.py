"""Whether a line of an earlier script is the finished answer of a sample, and which state that is.

Pure. The verdict over an answer is `outcome.py`'s, as for one that a worker has received; here is
what a line from elsewhere adds: it must be of this sample, this prompt, these settings and whole.
"""

from __future__ import annotations  # array[int] cannot be written at run time before 3.12

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from app.core.outcome import FLAG_CLIPPED, Asked, Finish, finish_type, judge
from app.core.states import OPEN, SampleState
from app.core.types import AttemptEnd, EndKind, Keep, SampleId

FLAG_ADOPTED = "adopted"
FLAG_ADOPTED_TEXT = "adopted_text"
"""The ids were made from the answer's text: re-encoding need not give what the model chose."""
ADOPTED_ATTEMPT = 0
"""The attempt that an adopted line's request id bears: claims count from 1, so it is the oldest."""


class Left(StrEnum):
    """Why a line is left; the words follow a count."""

    UNREADABLE = "that cannot be read"
    TORN = "torn at the end of the file"
    NO_ID = "without an id"
    UNKNOWN = "whose id no sample has"
    AMBIGUOUS = "whose id several samples have"
    NO_ANSWER = "without an answer"
    NOT_ENDED = "whose answer did not end by itself or by its length"
    BAD_IDS = "whose ids the model does not have"
    TOO_LONG = "longer than max_new_tokens"
    OTHER_PROMPT = "with another prompt"
    OTHER_SETTINGS = "made under other settings"
    ANSWERED = "answered here already"
    CLOSED = "failed or rejected here"
    DOUBLED = "replaced by a later line of the same sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A sample that a line may answer. `limit_tokens` is its own max_new_tokens or the partition's.

    `held_tokens`: of a half-written answer of ours, which an adopted one replaces.
    """

    sample_id: SampleId
    key: str
    index: int
    replica: int
    state: SampleState
    has_line: bool
    prompt_sha256: str
    prompt_tokens: int | None
    limit_tokens: int
    held_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a line says of its answer: ids or a text, and how it ended (None: it does not say).

    `prompt_sha256s`: every digest that its prompt may have here, empty where it does not tell it.
    `gen_id`: of a line of ours from another run.
    """

    ids: array[int] | None
    text: str | None
    finish_reason: object
    prompt_sha256s: Sequence[str] = ()
    gen_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What holds for all answers of a run. `vocabulary_size` None: nobody said."""

    gen_id: str
    vocabulary_size: int | None = None
    think_open: int | None = None
    think_close: int | None = None
    detect_loops: bool = True


def why_left(found: Found, sample: Sought, rules: Judging) -> Left | None:
    """Return why a line is no answer of this sample, without a look at how it ended."""
    if sample.state not in OPEN:
        is_kept = sample.state not in (SampleState.FAILED, SampleState.REJECTED)
        return Left.ANSWERED if is_kept else Left.CLOSED
    if sample.has_line:
        return Left.ANSWERED
    if found.prompt_sha256s and sample.prompt_sha256 not in found.prompt_sha256s:
        return Left.OTHER_PROMPT
    if found.gen_id is not None and found.gen_id != rules.gen_id:
        return Left.OTHER_SETTINGS
    if found.ids is None and not (found.text or "").strip():
        return Left.NO_ANSWER
    return None if _may_have_ended(found.finish_reason) else Left.NOT_ENDED


def _may_have_ended(finish_reason: object) -> bool:
    return finish_reason is None or finish_type(finish_reason) in (Finish.STOP, Finish.LENGTH)


def verdict(ids: array[int], finish_reason: object, sample: Sought, rules: Judging) -> Keep | Left:
    """Return what the sample becomes by an answer of these ids, or why it stays open.

    An answer that does not say how it ended was cut if it is as long as it may be.
    """
    if len(ids) > sample.limit_tokens:
        return Left.TOO_LONG
    if rules.vocabulary_size is not None and ids and max(ids) >= rules.vocabulary_size:
        return Left.BAD_IDS
    end = AttemptEnd(
        kind=EndKind.FINISHED, ids=ids, finish_reason=_ended(ids, finish_reason, sample)
    )
    asked = Asked(
        prompt_tokens=sample.prompt_tokens or 0,
        held=array("I"),
        max_new_tokens=sample.limit_tokens,
        charged=0,
        max_attempts=2,
        end_token_ids=_end_ids(finish_reason),
        think_open=rules.think_open,
        think_close=rules.think_close,
        detect_loops=rules.detect_loops,
    )
    outcome = judge(end, asked, server_alive=True, delay_s=0.0)
    if not isinstance(outcome, Keep):
        return Left.NOT_ENDED
    if outcome.state is SampleState.EMPTY:
        return Left.NO_ANSWER
    # which length was asked for back then, nobody knows: extending may go on up to ours
    flags = tuple(flag for flag in outcome.flags if flag != FLAG_CLIPPED)
    return replace(outcome, flags=flags)


def _ended(ids: array[int], finish_reason: object, sample: Sought) -> object:
    if finish_reason is not None:
        return finish_reason
    return "length" if len(ids) == sample.limit_tokens else "stop"


def _end_ids(finish_reason: object) -> frozenset[int]:
    matched = finish_reason.get("matched") if isinstance(finish_reason, Mapping) else None
    return frozenset({matched}) if type(matched) is int else frozenset()
