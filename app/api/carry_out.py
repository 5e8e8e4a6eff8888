"""An order's body to its control: the one table that the API and the direct command line share."""

from dataclasses import asdict
from datetime import datetime

from app import controls
from app.api.schemas import (
    BudgetOrder,
    ChangeAnswer,
    ConcurrencyOrder,
    DrainOrder,
    GoalOrder,
    OrderAnswer,
    PauseOrder,
    ResumeOrder,
    RetryOrder,
    RunOrder,
)
from app.controls import Done
from app.core.states import SampleState
from app.core.views import RunView
from app.ledger.db import Ledger


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
    if isinstance(order, PauseOrder | DrainOrder | ResumeOrder):
        done = _move(ledger, run, order, who, now)
    elif isinstance(order, RetryOrder | BudgetOrder | ConcurrencyOrder | GoalOrder):
        done = _set(ledger, run, order, who, now)
    else:
        done = controls.stop(ledger, run, who=who, now=now, service_lives=service_lives)
    return OrderAnswer(
        run=done.run_id,
        changes=tuple(ChangeAnswer(**asdict(change)) for change in done.changes),
        sentence=done.sentence,
    )


def _move(
    ledger: Ledger,
    run: RunView,
    order: PauseOrder | DrainOrder | ResumeOrder,
    who: str,
    now: datetime,
) -> Done:
    if isinstance(order, PauseOrder):
        return controls.pause(ledger, run, order.partitions, who=who, now=now)
    if isinstance(order, DrainOrder):
        return controls.drain(ledger, run, order.partitions, who=who, now=now)
    return controls.resume(ledger, run, order.partitions, who=who, now=now)


def _set(
    ledger: Ledger,
    run: RunView,
    order: RetryOrder | BudgetOrder | ConcurrencyOrder | GoalOrder,
    who: str,
    now: datetime,
) -> Done:
    if isinstance(order, BudgetOrder):
        return controls.set_budget(ledger, run, order.partition, order.tokens, who=who, now=now)
    if isinstance(order, ConcurrencyOrder):
        return controls.set_concurrency(
            ledger, run, order.partition, order.requests, who=who, now=now
        )
    if isinstance(order, GoalOrder):
        return controls.set_goal(ledger, run, order.partition, order.samples, who=who, now=now)
    which = controls.Which(
        partition=order.partition,
        reason=order.reason,
        states=tuple(SampleState(state) for state in order.states),
    )
    return controls.retry(ledger, run, which, who=who, now=now)
