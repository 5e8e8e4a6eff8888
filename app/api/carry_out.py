"""An order's body to its control: the one table that the API and the direct command line share."""

from dataclasses import asdict
from datetime import datetime

from app import controls, limiting
from app.api.schemas import (
    BudgetOrder,
    ChangeAnswer,
    ConcurrencyOrder,
    DeadlineOrder,
    DrainOrder,
    ExtendOrder,
    GoalOrder,
    OrderAnswer,
    PauseOrder,
    RestartOrder,
    ResumeOrder,
    RetryOrder,
    RunOrder,
)
from app.clock import to_ms
from app.controls import Done
from app.core.deadlines import NONE
from app.core.format import one_line
from app.core.states import SampleState
from app.core.views import RunView
from app.deadlining import set_deadline
from app.errors import InputError
from app.extending import Longer, extend
from app.ledger.db import Ledger
from app.ledger.seen import Seen


def carry_out(
    ledger: Ledger,
    run: RunView,
    order: RunOrder,
    *,
    who: str,
    now: datetime,
    service_lives: bool = True,
) -> OrderAnswer:
    """Do what is ordered, in the ledger; ConflictError and NotFoundError have changed nothing."""
    if isinstance(order, PauseOrder | DrainOrder | RestartOrder | ResumeOrder):
        done = _move(ledger, run, order, who, now)
    elif isinstance(order, RetryOrder | BudgetOrder | ConcurrencyOrder | GoalOrder | DeadlineOrder):
        done = _set(ledger, run, order, who, now)
    else:
        done = controls.stop(
            ledger,
            run,
            who=who,
            now=now,
            finish=order.finish,
            service_lives=service_lives,
            reason=one_line(order.reason),
        )
    return _answer(done)


def carry_out_extend(
    ledger: Ledger, run: RunView, partition: str, order: ExtendOrder, *, who: str, now: datetime
) -> OrderAnswer:
    """Extend a partition: may read gigabytes, so never on the event loop."""
    longer = Longer(partition=partition, max_new_tokens=order.max_new_tokens, reason=order.reason)
    return _answer(extend(ledger, run, longer, who=who, now=now))


def _answer(done: Done) -> OrderAnswer:
    return OrderAnswer(
        run=done.run_id,
        changes=tuple(ChangeAnswer(**asdict(change)) for change in done.changes),
        sentence=done.sentence,
    )


def _move(
    ledger: Ledger,
    run: RunView,
    order: PauseOrder | DrainOrder | RestartOrder | ResumeOrder,
    who: str,
    now: datetime,
) -> Done:
    if isinstance(order, PauseOrder):
        return controls.pause(ledger, run, order.partitions, who=who, now=now)
    if isinstance(order, DrainOrder):
        return controls.drain(ledger, run, order.partitions, who=who, now=now)
    if isinstance(order, RestartOrder):
        return controls.restart(ledger, run, order.partitions, who=who, now=now)
    return controls.resume(
        ledger, run, order.partitions, who=who, now=now, also_paused=order.also_paused
    )


def _set(
    ledger: Ledger,
    run: RunView,
    order: RetryOrder | BudgetOrder | ConcurrencyOrder | GoalOrder | DeadlineOrder,
    who: str,
    now: datetime,
) -> Done:
    if isinstance(order, BudgetOrder):
        return limiting.set_budget(
            ledger, run, order.partition, order.tokens, who=who, now=now, seen=_seen(order.expect)
        )
    if isinstance(order, ConcurrencyOrder):
        return limiting.set_concurrency(
            ledger, run, order.partition, order.requests, who=who, now=now, seen=_seen(order.expect)
        )
    if isinstance(order, DeadlineOrder):
        seen = _seen_moment(order.expect)
        return set_deadline(
            ledger, run, order.partition, order.deadline, who=who, now=now, seen=seen
        )
    if isinstance(order, GoalOrder):
        return limiting.set_goal(
            ledger, run, order.partition, order.samples, who=who, now=now, seen=_seen(order.expect)
        )
    which = controls.Which(
        partition=order.partition,
        reason=order.reason,
        states=tuple(SampleState(state) for state in order.states),
    )
    return controls.retry(ledger, run, which, who=who, now=now)


def _seen(expect: str | int | None) -> Seen | None:
    """Return what whoever orders had seen: a number, or a word for that none is set."""
    if expect is None:
        return None
    return Seen(value=expect if isinstance(expect, int) else None)


def _seen_moment(expect: str | None) -> Seen | None:
    if expect is None or expect == NONE:
        return None if expect is None else Seen(value=None)
    try:
        return Seen(value=to_ms(datetime.fromisoformat(expect)))
    except (ValueError, TypeError, OverflowError):  # the second: it has no offset
        raise InputError(
            f'expect "{expect}" is not a moment with its offset',
            hint='write what the run says as deadline_at, or "none"',
        ) from None
