"""A partition of a spec as a row of the ledger, which deadlines are set, when folders are one."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from app.core.deadlines import DeadlineError, is_spent, parse_deadline
from app.core.spec import PartitionSpec, RunSpec, from_json
from app.core.views import PartitionView, RunView
from app.errors import InputError
from app.ledger.runs import NewPartition

Moments = dict[str | None, datetime | None]


def moment_of(deadline: str | None, now: datetime, place: str) -> datetime | None:
    """Return the moment that a deadline of a spec means now; InputError if it has passed."""
    try:
        return None if deadline is None else parse_deadline(deadline, now)
    except DeadlineError as error:
        raise InputError(f"deadline of {place}: {error}") from error


def moments_of(spec: RunSpec, now: datetime) -> Moments:
    """Return when a new run (None) and its partitions stop; InputError if one has passed."""
    written: dict[str | None, str | None] = {None: spec.deadline}
    written |= {name: one.deadline for name, one in spec.partitions.items()}
    return {
        name: moment_of(deadline, now, name or "the run")
        for name, deadline in written.items()
        if deadline is not None
    }


def moments_anew(
    run: RunView,
    partitions: Sequence[PartitionView],
    new: RunSpec,
    now: datetime,
    *,
    leaves_stopped: bool,
) -> Moments:
    """Return the deadlines that a run gets which is submitted again, None for its own.

    Those that are written otherwise, or that have passed over a run at rest; not where it is to be
    left stopped by one. InputError if one has passed.
    """
    old = from_json(run.spec_json)

    def is_new(was: str | None, wanted: str | None, live: datetime | None) -> bool:
        if was != wanted:
            return True
        return wanted is not None and is_spent(run, live, now) and not leaves_stopped

    moments: Moments = {}
    if is_new(old.deadline, new.deadline, run.deadline_at):
        moments[None] = moment_of(new.deadline, now, "the run")
    for partition in partitions:
        name = partition.name
        was, wanted = old.partitions.get(name), new.partitions.get(name)
        if was is None or wanted is None:
            continue
        if is_new(was.deadline, wanted.deadline, partition.deadline_at):
            moments[name] = moment_of(wanted.deadline, now, name)
    return moments


def new_partition(
    name: str, partition: PartitionSpec, prompts: Path, now: datetime
) -> NewPartition:
    """Return the row of a partition whose limits are filled in."""
    return NewPartition(
        name=name,
        class_name=partition.class_name,
        prompts_path=str(prompts.absolute()),
        max_new_tokens=partition.max_new_tokens or 1,
        own_concurrency=partition.concurrency,
        token_budget=partition.token_budget_tokens,
        goal_samples=partition.max_samples,
        deadline_at=moment_of(partition.deadline, now, name),
    )


def same_folder(one: str | Path, other: str | Path) -> bool:
    return Path(one).resolve() == Path(other).resolve()
