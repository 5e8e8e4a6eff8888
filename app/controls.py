"""What people do to a run: pause, drain, resume, stop, retry. Limits are `limiting.py`'s.

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
from app.errors import ConflictError, NotFoundError
from app.ledger import orders, runs, samples, workers
from app.ledger.activity import Deed
from app.ledger.db import Ledger
from app.ledger.orders import Change, Order

LIVE = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.STOPPING})
MAX_CONCURRENCY = 10_000
DRAINED = "drained"
RESTARTED = orders.RESTARTED
_MOST_NAMED = 20
_MAX_CHARS = 100
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
        raise NotFoundError(
            f"there is no run {_quoted(wanted[:_MAX_CHARS])}",
            hint=f"{_choices(known)} (ledger: {ledger.path})",
            runs=tuple((run.id, run.name) for run in known[:_MOST_NAMED]),
        )
    return found[0]


def _quoted(name: str) -> str:
    return name if name.isdecimal() else f'"{name}"'


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
        return done(run, orders.move_partitions(ledger, order, partitions, "pause"))
    return done(run, [_move_run(ledger, run, order, "pause")])


def drain(
    ledger: Ledger, run: RunView, partitions: Sequence[str], *, who: str, now: datetime
) -> Done:
    """Let what runs end and send nothing new; without names, every active partition."""
    order = Order(run_id=run.id, who=who, now=now)
    if run.state is not RunState.RUNNING:
        raise ConflictError(f"run {run.id} is {run.state}; nothing of it runs that could drain")
    if partitions:
        return done(run, orders.move_partitions(ledger, order, partitions, "drain"))
    changes = orders.move_each(ledger, order, "drain")
    if not changes:
        raise ConflictError(f"run {run.id} has no active partition that could drain")
    return done(run, changes)


def restart(
    ledger: Ledger, run: RunView, partitions: Sequence[str], *, who: str, now: datetime
) -> Done:
    """Take back what is in flight, save it, and send it anew: a pause that ends by itself."""
    if run.state is not RunState.RUNNING:
        raise ConflictError(f"run {run.id} is {run.state}; nothing of it is in flight")
    for each in runs.partitions_of(ledger, run.id):
        if each.name in partitions and each.state is not PartitionState.ACTIVE:
            raise ConflictError(f"{each.name} is {each.state}; nothing of it is to start again")
    order = Order(run_id=run.id, who=who, now=now)
    return done(run, orders.move_partitions(ledger, order, partitions, "pause", reason=RESTARTED))


def resume(
    ledger: Ledger,
    run: RunView,
    partitions: Sequence[str],
    *,
    who: str,
    now: datetime,
    also_paused: bool = False,
) -> Done:
    """Go on; without names, the run, and its partitions if none of them would go on with it.

    `also_paused`: the partitions too that somebody has paused one by one.
    """
    order = Order(run_id=run.id, who=who, now=now)
    if partitions:
        return done(run, orders.move_partitions(ledger, order, partitions, "resume"))
    changes = []
    if run.state is not RunState.RUNNING:
        changes.append(_move_run(ledger, run, order, "resume"))
    partitions_now = runs.partitions_of(ledger, run.id)
    if also_paused:
        changes += orders.move_each(ledger, order, "resume")
    elif not changes or not any(map(_goes_on, partitions_now)):
        # what a stop let finish goes on with the run; what a person has paused stays so
        drained = [each.name for each in partitions_now if is_by_drain(each.state, each.reason)]
        if changes and drained:
            changes += orders.move_partitions(ledger, order, drained, "resume")
        else:
            changes += orders.move_each(ledger, order, "resume")
    if not changes:
        raise ConflictError(f"run {run.id} is running and no partition of it is paused")
    return done(run, changes)


def stop(  # noqa: PLR0913 - of what, how, why and by whom: each once
    ledger: Ledger,
    run: RunView,
    *,
    who: str,
    now: datetime,
    finish: bool = False,
    service_lives: bool = True,
    reason: str = "",
) -> Done:
    """End the run as a pause does, or `finish` what runs first; it can be resumed later.

    `reason` is the person's own words for it; it stands with the run until that goes on.

    It is `stopping` until its workers are gone. That is the supervisor's to see; only where no
    service lives, and none of the last one's workers stands in the ledger, it is said here.
    """
    order = Order(run_id=run.id, who=who, now=now)
    drained = orders.move_each(ledger, order, "drain") if finish and run.state in LIVE else []
    changes = [*drained, _move_run(ledger, run, order, "stop", reason)]
    if not service_lives and not workers.living(ledger, run.id):
        stopping = runs.get_run(ledger, run.id)
        changes.append(_move_run(ledger, stopping, order, "workers gone", reason))
    return done(run, changes)


def is_by_drain(state: PartitionState, reason: str) -> bool:
    """Return whether a partition finishes what runs, or has, and goes on with its run."""
    return state is PartitionState.DRAINING or reason == DRAINED


def _move_run(ledger: Ledger, run: RunView, order: Order, event: str, reason: str = "") -> Change:
    deed = Deed(who=order.who, event=event, detail=reason, run_id=run.id)
    state = runs.move_run(ledger, run.id, event, deed, order.now)
    return Change(target="run", what="state", old=run.state, new=state)


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
            blocked = "; its token budget is used up, raise it to send them"
            new = f"{n:,} pending again{blocked if partition.budget_reached else ''}"
            changes.append(Change(target=partition.name, what="retry", old=about, new=new))
    # also when nothing moved: an order that died between the two statements is repeated so
    if orders.reopen_run(ledger, Order(run_id=run.id, who=who, now=now)):
        changes.append(Change(target="run", what="state", old=run.state, new=RunState.RUNNING))
    if not changes:
        raise ConflictError(f"run {run.id} has no sample that is {about}; nothing to try again")
    return done(run, changes)


def _goes_on(partition: PartitionView) -> bool:
    """Whether a partition has work, and does it as soon as its run goes on."""
    return partition.state is PartitionState.ACTIVE and not partition.is_over


def _chosen(ledger: Ledger, run: RunView, name: str | None) -> list[PartitionView]:
    partitions = runs.partitions_of(ledger, run.id)
    chosen = [each for each in partitions if name in (None, each.name)]
    if not chosen:
        known = ", ".join(each.name for each in partitions)
        raise NotFoundError(f"run {run.id} has no partition {name}", hint=f"It has {known}")
    return chosen


def done(run: RunView, changes: Sequence[Change]) -> Done:
    """Return what was done, with its sentence; of many changes the first eight are named."""
    words = "; ".join(f"{one.target}: {one.what} {one.old} -> {one.new}" for one in changes[:8])
    more = plural(len(changes) - 8, "more change") if len(changes) > 8 else ""  # noqa: PLR2004 - one screen
    sentence = f'run {run.id} "{run.name}": {words}' + (f"; {more}" if more else "")
    return Done(run_id=run.id, changes=tuple(changes), sentence=sentence)
