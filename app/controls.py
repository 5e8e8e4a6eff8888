"""What people do to a run: pause, drain, resume, stop, retry, and set limits.

Owns which run is meant and what an order means for a run as a whole; the guarded moves are the
ledger's. Everything here only writes what is wanted: the supervisor makes it so. Invariant: an
order that is refused (ConflictError, NotFoundError) has changed nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.format import plural
from app.core.states import PartitionState, RunState, SampleState
from app.core.types import RunId
from app.core.views import PartitionView, RunView
from app.errors import ConflictError, InputError, NotFoundError
from app.ledger import limits, orders, runs, samples, workers
from app.ledger.activity import Deed
from app.ledger.db import Ledger
from app.ledger.orders import Change, Order

LIVE = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.STOPPING})
MAX_CONCURRENCY = 10_000
DEFAULT_RETRY = (SampleState.FAILED,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an order did: every change, old and new, and one sentence for people."""

    run_id: RunId
    changes: tuple[Change, ...]
    sentence: str


def find_run(ledger: Ledger, wanted: str | None = None) -> RunView:
    """Return the run of that number or name; without one, the only run that is live.

    With no live run at all it is the newest if there is just one. NotFoundError lists the choices.
    """
    known = runs.list_runs(ledger)
    if wanted is None:
        return _only(known, ledger)
    by_number = [run for run in known if str(run.id) == wanted]
    by_name = [run for run in known if run.name == wanted]
    found = by_number or by_name
    if not found:
        raise NotFoundError(f'there is no run "{wanted}" in {ledger.path}', hint=_choices(known))
    return found[0]


def _only(known: Sequence[RunView], ledger: Ledger) -> RunView:
    live = [run for run in known if run.state in LIVE] or list(known)
    if len(live) == 1:
        return live[0]
    if not known:
        raise NotFoundError(
            f"there is no run in {ledger.path} yet", hint="Start one: longwatch run"
        )
    raise NotFoundError(f"{len(live)} runs could be meant; say which", hint=_choices(known))


def _choices(known: Sequence[RunView]) -> str:
    if not known:
        return "There is none yet; start one: longwatch run"
    return "There are " + ", ".join(f'{run.id} "{run.name}" ({run.state})' for run in known)


def pause(
    ledger: Ledger, run: RunView, partitions: Sequence[str], *, who: str, now: datetime
) -> Done:
    """Stop sending and put back what runs; without names, the run as a whole."""
    order = Order(run_id=run.id, who=who, now=now)
    if partitions:
        return _done(run, orders.move_partitions(ledger, order, partitions, "pause"))
    return _done(run, [_move_run(ledger, run, order, "pause")])


def drain(
    ledger: Ledger, run: RunView, partitions: Sequence[str], *, who: str, now: datetime
) -> Done:
    """Let what runs end and send nothing new; without names, every active partition."""
    order = Order(run_id=run.id, who=who, now=now)
    if run.state is not RunState.RUNNING:
        raise ConflictError(f"run {run.id} is {run.state}; nothing of it runs that could drain")
    if partitions:
        return _done(run, orders.move_partitions(ledger, order, partitions, "drain"))
    changes = orders.move_each(ledger, order, "drain")
    if not changes:
        raise ConflictError(f"run {run.id} has no active partition that could drain")
    return _done(run, changes)


def resume(
    ledger: Ledger, run: RunView, partitions: Sequence[str], *, who: str, now: datetime
) -> Done:
    """Go on; without names, the run, and its partitions if none of them would go on with it."""
    order = Order(run_id=run.id, who=who, now=now)
    if partitions:
        return _done(run, orders.move_partitions(ledger, order, partitions, "resume"))
    changes = []
    if run.state is not RunState.RUNNING:
        changes.append(_move_run(ledger, run, order, "resume"))
    states = {each.state for each in runs.partitions_of(ledger, run.id)}
    if not changes or PartitionState.ACTIVE not in states:
        changes += orders.move_each(ledger, order, "resume")
    if not changes:
        raise ConflictError(f"run {run.id} is running and no partition of it is paused")
    return _done(run, changes)


def stop(
    ledger: Ledger, run: RunView, *, who: str, now: datetime, service_lives: bool = True
) -> Done:
    """End the run as a pause does; it can be resumed later.

    It is `stopping` until its workers are gone. That is the supervisor's to see; only where no
    service lives, and none of the last one's workers stands in the ledger, it is said here.
    """
    order = Order(run_id=run.id, who=who, now=now)
    changes = [_move_run(ledger, run, order, "stop")]
    if not service_lives and not workers.living(ledger, run.id):
        changes.append(_move_run(ledger, runs.get_run(ledger, run.id), order, "workers gone"))
    return _done(run, changes)


def _move_run(ledger: Ledger, run: RunView, order: Order, event: str) -> Change:
    deed = Deed(who=order.who, event=event, detail="", run_id=run.id)
    state = runs.move_run(ledger, run.id, event, deed, order.now)
    return Change(target="run", what="state", old=run.state, new=state)


def set_concurrency(
    ledger: Ledger, run: RunView, partition: str, n: int | None, *, who: str, now: datetime
) -> Done:
    """Set a partition's own concurrency; None: its share of the class again."""
    if n is not None and not 1 <= n <= MAX_CONCURRENCY:
        raise InputError(
            f"concurrency {n} is not a whole number from 1 to {MAX_CONCURRENCY:,}",
            hint="To send nothing, pause the partition",
        )
    order = Order(run_id=run.id, who=who, now=now)
    return _done(run, [limits.set_concurrency(ledger, order, partition, n)])


def set_budget(
    ledger: Ledger,
    run: RunView,
    partition: str | None,
    tokens: int | None,
    *,
    who: str,
    now: datetime,
) -> Done:
    """Set the token budget of a partition, or of the run; None takes it away."""
    _positive("budget", tokens)
    order = Order(run_id=run.id, who=who, now=now)
    if partition is None:
        return _done(run, [limits.set_run_budget(ledger, order, tokens)])
    return _done(run, [limits.set_partition_budget(ledger, order, partition, tokens)])


def set_goal(
    ledger: Ledger, run: RunView, partition: str, n: int | None, *, who: str, now: datetime
) -> Done:
    """Set how many answers are wanted of a partition; None: as many as there are prompts."""
    _positive("goal", n)
    order = Order(run_id=run.id, who=who, now=now)
    return _done(run, [limits.set_goal(ledger, order, partition, n)])


def _positive(what: str, n: int | None) -> None:
    if n is not None and n < 1:
        raise InputError(f"{what} {n} is not above 0", hint="Leave it out to have none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which samples to try again: of one partition or all, of these states, with this reason."""

    partition: str | None = None
    reason: str | None = None
    states: tuple[SampleState, ...] = DEFAULT_RETRY


def retry(ledger: Ledger, run: RunView, which: Which, *, who: str, now: datetime) -> Done:
    """Make samples pending again; a finished run goes on with them."""
    about = " or ".join(which.states)
    if which.reason:
        about += f' whose reason contains "{which.reason}"'
    changes = []
    for partition in _chosen(ledger, run, which.partition):
        deed = Deed(
            who=who,
            event="retry",
            detail=f"{partition.name}: {about}",
            run_id=run.id,
            partition_id=partition.id,
        )
        n = samples.retry(ledger, partition.id, which.states, which.reason, deed, now)
        if n:
            new = f"{n:,} pending again"
            changes.append(Change(target=partition.name, what="retry", old=about, new=new))
    # also when nothing moved: an order that died between the two statements is repeated so
    if orders.reopen_run(ledger, Order(run_id=run.id, who=who, now=now)):
        changes.append(Change(target="run", what="state", old=run.state, new=RunState.RUNNING))
    if not changes:
        raise ConflictError(f"run {run.id} has no sample that is {about}; nothing to try again")
    return _done(run, changes)


def _chosen(ledger: Ledger, run: RunView, name: str | None) -> list[PartitionView]:
    partitions = runs.partitions_of(ledger, run.id)
    chosen = [each for each in partitions if name in (None, each.name)]
    if not chosen:
        known = ", ".join(each.name for each in partitions)
        raise NotFoundError(f"run {run.id} has no partition {name}", hint=f"It has {known}")
    return chosen


def _done(run: RunView, changes: Sequence[Change]) -> Done:
    words = "; ".join(f"{one.target}: {one.what} {one.old} -> {one.new}" for one in changes[:8])
    more = plural(len(changes) - 8, "more change") if len(changes) > 8 else ""  # noqa: PLR2004 - one screen
    sentence = f'run {run.id} "{run.name}": {words}' + (f"; {more}" if more else "")
    return Done(run_id=run.id, changes=tuple(changes), sentence=sentence)
