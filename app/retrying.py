"""Retry by choice: the failures that a page showed as one group, or one sample, tried again.

Owns the order as a whole: which samples, partition by partition, then the run that goes on with
them. Invariant: nothing that is refused (ConflictError, NotFoundError) has changed anything.
"""

from dataclasses import dataclass
from datetime import datetime

from app.core.format import plural
from app.core.reasons import FAILURES, Choice
from app.core.states import RETRYABLE, SampleState
from app.core.types import SampleId
from app.core.views import RunView
from app.errors import ConflictError, NotFoundError
from app.ledger import failures, orders, runs
from app.ledger.activity import Deed
from app.ledger.db import Ledger
from app.ledger.one_sample import whole_sample
from app.ledger.orders import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """How many samples of which partitions are pending again.

    `spent`: those of the partitions whose token budget is used up, so that nothing of them is sent.
    """

    by_partition: tuple[tuple[str, int], ...]
    spent: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return sum(n for _, n in self.by_partition)


def retry_chosen(
    ledger: Ledger, run: RunView, choice: Choice, *, who: str, now: datetime
) -> Retried:
    """Make the chosen failures pending again, each once; a finished run goes on with them."""
    partitions = runs.partitions_of(ledger, run.id)
    meant = [each for each in partitions if choice.partition in ("", each.name)]
    if not meant:
        known = ", ".join(each.name for each in partitions)
        raise NotFoundError(
            f"run {run.id} has no partition {choice.partition}", hint=f"It has {known}"
        )
    moved: dict[str, int] = {}
    for partition in meant:
        for state in FAILURES:
            if state not in RETRYABLE or not choice.has_state(state):
                continue
            wanted, told = _asking(choice)
            chosen = failures.members(ledger, partition.id, state, wanted)
            about = plural(len(chosen), f"{state} sample") + _why(choice, told)
            deed = Deed(
                who=who,
                event="retry",
                detail=f"{partition.name}: {about}",
                run_id=run.id,
                partition_id=partition.id,
            )
            n = failures.retry_members(ledger, partition.id, state, chosen, deed, now)
            moved[partition.name] = moved.get(partition.name, 0) + n
    return _reopened(ledger, moved, Order(run_id=run.id, who=who, now=now))


def _asking(choice: Choice) -> tuple[failures.Wanted, list[str]]:
    """Return the question whether a failure is meant, and the reason of the first that was."""
    told: list[str] = []

    def wanted(state: SampleState, reason: str | None) -> bool:
        takes = choice.takes(state, reason)
        if takes and not told:
            told.append(" ".join((reason or "").split()))
        return takes

    return wanted, told


def _why(choice: Choice, reasons: list[str]) -> str:
    """Say what was asked for besides partition and state."""
    told = f' whose reason contains "{choice.words}"' if choice.words else ""
    if choice.group and reasons and reasons[0]:
        told += f", such as: {reasons[0]}"
    return told + (", without those that would fail again" if choice.is_sparing else "")


def retry_one(
    ledger: Ledger, run: RunView, sample_id: SampleId, *, who: str, now: datetime
) -> Retried:
    """Make one sample pending again; ConflictError where its state does not allow it."""
    entry = whole_sample(ledger, run.id, sample_id).entry
    partition = runs.get_partition(ledger, entry.partition_id)
    if entry.state not in RETRYABLE:
        raise ConflictError(
            f"sample {entry.key} is {entry.state}; only {_retryable()} can be tried again"
        )
    deed = Deed(
        who=who,
        event="retry",
        detail=f"{partition.name}: sample {entry.key}",
        run_id=run.id,
        partition_id=partition.id,
    )
    n = failures.retry_members(
        ledger, partition.id, entry.state, [(entry.id, entry.attempt)], deed, now
    )
    return _reopened(ledger, {partition.name: n}, Order(run_id=run.id, who=who, now=now))


def _retryable() -> str:
    return " or ".join(str(state) for state in SampleState if state in RETRYABLE)


def _reopened(ledger: Ledger, moved: dict[str, int], order: Order) -> Retried:
    """Let a finished run go on; also when nothing moved, for an order that was cut off before."""
    is_opened = orders.reopen_run(ledger, order)
    counted = tuple((name, n) for name, n in moved.items() if n)
    if not counted and not is_opened:
        raise ConflictError(
            "nothing was there to try again", hint="somebody may have done it already; reload"
        )
    spent = [
        each.name
        for each in runs.partitions_of(ledger, order.run_id)
        if each.budget_reached and any(name == each.name for name, _ in counted)
    ]
    return Retried(by_partition=counted, spent=tuple(spent))
