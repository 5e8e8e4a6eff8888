"""POST: the limits of a run or of a partition, typed into the page: budget, goal, deadline.

Each goes the way of the API's order. Owns how a limit is typed, what is said of it, and how it is
taken back: with the old value, a deadline only while that is still to come. Works without script,
like every form.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from app.api import ServiceDoor, carry_out
from app.api.schemas import BudgetOrder, ChangeAnswer, DeadlineOrder, GoalOrder
from app.api.sending import RowId
from app.clock import Clock, iso
from app.controls import find_run
from app.core import format as words
from app.core.deadlines import NONE
from app.core.landing import EndsBy, end_words
from app.core.types import PartitionId
from app.core.views import PartitionView, RunView
from app.errors import ChangedError, InputError, LedgerError
from app.figures import PartitionFigures, RunFigures
from app.ledger import runs
from app.ledger.db import Ledger
from app.web.answers import Again, Undo, answer, refused
from app.web.forms import Form, named
from app.web.typed_limits import MAX_TYPED, in_full, typed_goal, typed_limit, typed_tokens_budget
from app.web.wording import typed_tokens

LimitOrder = BudgetOrder | GoalOrder | DeadlineOrder
_FIELDS = {"budget": "tokens", "goal": "samples", "deadline": "deadline"}
# the look that comes after an order tells what it means; a message does not wait longer for it
_N_LOOKS, _LOOK_EVERY_S = 12, 0.1


class _Orders:
    """Carries out what is typed, and says what it did."""

    def __init__(self, ledger: Ledger, service: ServiceDoor, clock: Clock) -> None:
        self._ledger, self._service, self._clock = ledger, service, clock

    async def of_run(self, kind: str, run: str, request: Request) -> Response:
        found = await run_in_threadpool(find_run, self._ledger, run)
        return await self._ordered(kind, request, found, None)

    async def of_partition(
        self, kind: str, run: str, partition_id: int, request: Request
    ) -> Response:
        found, _ = await run_in_threadpool(named, self._ledger, run, partition_id)
        wanted = PartitionId(partition_id)
        partition = await run_in_threadpool(runs.get_partition, self._ledger, wanted)
        return await self._ordered(kind, request, found, partition)

    async def _ordered(
        self, kind: str, request: Request, run: RunView, partition: PartitionView | None
    ) -> Response:
        form = Form(await request.body())
        present = partition.goal_samples if partition and kind == "goal" else None
        if kind == "budget":
            present = (partition or run).token_budget
        typed = in_full(kind, typed_limit(kind, form.get(_FIELDS[kind])), present)
        order = _ORDERS[kind](partition.name if partition else None, typed, _seen(form))

        def at_once() -> tuple[ChangeAnswer, ...]:
            who, now = request.state.who, self._clock.now()
            return carry_out(self._ledger, run, order, who=who, now=now).changes

        try:
            changes = await run_in_threadpool(at_once)
        except ChangedError as error:
            return refused(request, run, error, _again(kind, run, partition, typed, error))
        self._service.poke()
        said = "; ".join(
            f"{one.what} {_shown(one, one.old)} → {_shown(one, one.new)}" for one in changes
        )
        told = ""
        if request.headers.get("hx-request") == "true":
            told = await self._meaning(kind, run, partition)
        undo = _undo(kind, run, partition, changes[0], self._clock.now())
        name = partition.name if partition else run.name
        return answer(request, run, f"{name}: {said}{told and '; '}{told}", undo)

    async def _meaning(self, kind: str, run: RunView, partition: PartitionView | None) -> str:
        """Return what the next look knows of the order; nothing if it does not come soon."""
        since = self._clock.now()
        for _ in range(_N_LOOKS):
            try:
                figures = await run_in_threadpool(self._service.figures, run.id)
            except LedgerError:  # the order is carried out all the same
                return ""
            if figures.at >= since:
                return meaning(kind, _of(figures, partition))
            await self._clock.sleep(_LOOK_EVERY_S)
        return ""


def limit_forms(ledger: Ledger, service: ServiceDoor, clock: Clock) -> APIRouter:
    """Return the routes; they come before those that take any verb."""
    router = APIRouter(include_in_schema=False)
    orders = _Orders(ledger, service, clock)

    @router.post("/runs/{run}/budget")
    async def budget_of_run(run: str, request: Request) -> Response:
        return await orders.of_run("budget", run, request)

    @router.post("/runs/{run}/deadline")
    async def deadline_of_run(run: str, request: Request) -> Response:
        return await orders.of_run("deadline", run, request)

    @router.post("/runs/{run}/p/{partition_id}/budget")
    async def budget(run: str, partition_id: RowId, request: Request) -> Response:
        return await orders.of_partition("budget", run, partition_id, request)

    @router.post("/runs/{run}/p/{partition_id}/goal")
    async def goal(run: str, partition_id: RowId, request: Request) -> Response:
        return await orders.of_partition("goal", run, partition_id, request)

    @router.post("/runs/{run}/p/{partition_id}/deadline")
    async def deadline(run: str, partition_id: RowId, request: Request) -> Response:
        return await orders.of_partition("deadline", run, partition_id, request)

    return router


def _budget(partition: str | None, typed: str | None, seen: str | None) -> LimitOrder:
    expect = None if seen is None else _word_or(typed_tokens_budget(_none(seen)))
    return BudgetOrder(partition=partition, tokens=typed_tokens_budget(typed), expect=expect)


def _goal(partition: str | None, typed: str | None, seen: str | None) -> LimitOrder:
    expect = None if seen is None else _word_or(typed_goal(_none(seen)))
    return GoalOrder(partition=partition or "", samples=typed_goal(typed), expect=expect)


def _deadline(partition: str | None, typed: str | None, seen: str | None) -> LimitOrder:
    return DeadlineOrder(partition=partition, deadline=typed, expect=seen)


def _none(seen: str) -> str | None:
    return None if seen == NONE else seen


def _word_or(value: int | None) -> int | Literal["none"]:
    return "none" if value is None else value


_ORDERS: Mapping[str, Callable[[str | None, str | None, str | None], LimitOrder]] = {
    "budget": _budget,
    "goal": _goal,
    "deadline": _deadline,
}


def _shown(change: ChangeAnswer, value: str) -> str:
    digits = value.replace(",", "")
    is_tokens = change.what == "budget" and digits.isdigit()
    return typed_tokens(int(digits)) if is_tokens else value


def _seen(form: Form) -> str | None:
    seen = form.get("expect")
    if seen and len(seen) > MAX_TYPED:
        raise InputError(f'expect "{seen[:20]}…" is too long', hint="reload the page")
    return seen or None


def _at(kind: str, run: RunView, partition: PartitionView | None) -> str:
    return f"/runs/{run.id}" + (f"/p/{partition.id}" if partition else "") + f"/{kind}"


def _again(
    kind: str,
    run: RunView,
    partition: PartitionView | None,
    typed: str | None,
    error: ChangedError,
) -> Again:
    label = f"Have no {kind} anyway" if typed is None else f"Set {typed} anyway"
    fields = ((_FIELDS[kind], typed or NONE), ("expect", error.now))
    return Again(address=_at(kind, run, partition), fields=fields, label=label)


def _undo(
    kind: str, run: RunView, partition: PartitionView | None, change: ChangeAnswer, now: datetime
) -> Undo | None:
    if kind != "deadline":
        old, new = (value.replace(",", "") for value in (change.old, change.new))
        fields = ((_FIELDS[kind], old), ("expect", new))
        return Undo(address=_at(kind, run, partition), fields=fields)
    before = (partition or run).deadline_at
    if before is not None and before <= now:
        return None
    value = NONE if before is None else iso(before)
    return Undo(address=_at(kind, run, partition), fields=(("deadline", value),))


def _of(run: RunFigures, partition: PartitionView | None) -> PartitionFigures | RunFigures:
    if partition is None:
        return run
    return next((each for each in run.partitions if each.id == partition.id), run)


def meaning(kind: str, now: PartitionFigures | RunFigures) -> str:
    """Return what a limit that was just set means, "" where that is not known or is nothing."""
    budget, used, kept = now.token_budget_tokens, now.tokens.used, now.counts.kept
    goal = now.goal_samples if isinstance(now, PartitionFigures) else None
    if kind == "budget" and budget is not None and used >= budget:
        return f"{words.tokens(used)} tokens are used already, so nothing new is begun"
    if kind == "goal" and goal is not None and kept >= goal:
        return f"{kept:,} answers are there already, so nothing new is begun"
    if now.ends is None:
        return ""
    said = end_words(now.ends)
    is_own = kind == "budget" and now.ends.by is EndsBy.BUDGET
    return said.removeprefix("budget ") if is_own else said
