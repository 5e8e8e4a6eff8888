"""One request in the engine: what it will say, how far it is, and who waits for it.

Owns the plan of an answer (how many ids, why it ends) and the hand-over to the HTTP side; the
engine alone moves `made` and `due`. Invariant: sent <= due <= made <= total, none ever falls.
"""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.simulator.answers import AnswerStream
from app.simulator.tokenizer import END_ID, token_bytes


class Fault(StrEnum):
    """What is done to a model's answer after some tokens, on order of the script."""

    CUT = "cut"
    HANG = "hang"
    ABORT = "abort"
    GAP = "gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOrder:
    fault: Fault
    after_tokens: int
    finish_reason: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The part of `sampling_params` that the simulated model obeys."""

    max_new_tokens: int | None = 128
    min_new_tokens: int = 0
    ignore_eos: bool = False
    stop_token_ids: frozenset[int] = frozenset()
    stop_strings: tuple[str, ...] = ()
    no_stop_trim: bool = False
    skip_special_tokens: bool = True
    stream_interval_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How an answer will end; known before it starts, because the model is a function."""

    total_tokens: int
    finish_reason: dict[str, Any]
    ends_with_end_id: bool = False
    text_limit_bytes: int | None = None
    fault: FaultOrder | None = None


def plan_answer(
    words: AnswerStream, *, limit_tokens: int, natural_tokens: int, sampling: Sampling
) -> Plan:
    """Return where the answer stops: end id, stop id, stop string or the limit."""
    natural = natural_tokens
    if not sampling.ignore_eos:
        natural = max(natural, sampling.min_new_tokens + 1)
    ends_by_itself = not sampling.ignore_eos and natural <= limit_tokens
    total = natural if ends_by_itself else limit_tokens
    plan = Plan(
        total_tokens=total,
        finish_reason={"type": "stop", "matched": END_ID}
        if ends_by_itself
        else {"type": "length", "length": limit_tokens},
        ends_with_end_id=ends_by_itself,
    )
    visible = total - 1 if ends_by_itself else total
    if not sampling.ignore_eos and any(token > END_ID for token in sampling.stop_token_ids):
        plan = _stop_at_id(words, visible, plan, sampling)
    if sampling.stop_strings:
        plan = _stop_at_string(words, min(visible, plan.total_tokens), plan, sampling)
    return plan


def _stop_at_id(words: AnswerStream, visible: int, plan: Plan, sampling: Sampling) -> Plan:
    ids = words.words(0, visible)
    table = token_bytes(words.vocabulary_size)
    for place in range(sampling.min_new_tokens, len(ids)):
        if ids[place] in sampling.stop_token_ids:
            kept = ids[: place + 1] if sampling.no_stop_trim else ids[:place]
            return Plan(
                total_tokens=place + 1,
                finish_reason={"type": "stop", "matched": ids[place]},
                text_limit_bytes=sum(len(table[token]) for token in kept),
            )
    return plan


def _stop_at_string(words: AnswerStream, visible: int, plan: Plan, sampling: Sampling) -> Plan:
    ids = words.words(0, visible)
    table = token_bytes(words.vocabulary_size)
    text = b"".join(map(table.__getitem__, ids))
    found = [
        (text.find(stop.encode()) + len(stop.encode()), text.find(stop.encode()), stop)
        for stop in sampling.stop_strings
        if stop and stop.encode() in text
    ]
    if not found:
        return plan
    end, begin, stop = min(found)
    length = place = 0
    while length < end:
        length += len(table[ids[place]])
        place += 1
    return Plan(
        total_tokens=place,
        finish_reason={"type": "stop", "matched": stop},
        text_limit_bytes=end if sampling.no_stop_trim else begin,
    )


def with_fault(plan: Plan, order: FaultOrder | None) -> Plan:
    """Return the plan that ends early by a fault; a gap leaves the length alone."""
    if order is None:
        return plan
    if order.fault is Fault.GAP:
        return Plan(
            total_tokens=plan.total_tokens,
            finish_reason=plan.finish_reason,
            ends_with_end_id=plan.ends_with_end_id,
            text_limit_bytes=plan.text_limit_bytes,
            fault=order,
        )
    if order.after_tokens >= plan.total_tokens:
        return plan
    return Plan(
        total_tokens=order.after_tokens,
        finish_reason=order.finish_reason or {},
        text_limit_bytes=plan.text_limit_bytes,
        fault=order,
    )


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    rid: str
    prompt_tokens: int
    seed: bytes
    words: AnswerStream
    plan: Plan
    limit_tokens: int
    interval_tokens: int
    stream: bool
    keeps_to_limit: bool = False

    done: int = 0
    joined_step: int | None = None
    epoch: int = 0
    due: int = 0
    retractions: int = 0
    cached_tokens: int = 0
    submitted_at: float = 0.0
    admitted_at: float | None = None
    first_at: float | None = None
    finish_reason: dict[str, Any] | None = None
    cut_short: bool = False
    out_of_queue: bool = False
    _waiter: asyncio.Future[None] | None = field(default=None, repr=False)

    @property
    def total(self) -> int:
        return self.plan.total_tokens

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None

    def made(self, steps: int) -> int:
        return self.done if self.joined_step is None else self.done + steps - self.joined_step

    def ids(self, begin: int, end: int) -> list[int]:
        """Return the new ids [begin, end)."""
        if self.plan.ends_with_end_id and end == self.total:
            return [*self.words.words(begin, end - 1), END_ID]
        return self.words.words(begin, end)

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def news(self) -> None:
        """Wait until more is due or the end has come (or the client has left)."""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
