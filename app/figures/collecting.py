"""Reads one run's figures from the ledger and what a speedometer remembers of it.

Owns the assembly; no figure is computed twice elsewhere. Blocks for a moment (ledger, free space):
callers on an event loop use a thread. Without a speedometer (no service) speeds are not known.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.clock import Clock
from app.core.conditions import Condition, ConditionKind
from app.core.estimate import wanted_samples
from app.core.pace import Seen
from app.core.spec import from_json
from app.core.states import RunState
from app.core.views import PartitionView, RunView
from app.figures.ends import NO_SHARE, STALLED, EndMemory, Ends, Facts
from app.figures.forecasting import Outlook, outlook, progress_percent, progress_share
from app.figures.knowing import conditions_of, heartbeat_at
from app.figures.landings import cut_at_deadlines, landings, run_landing
from app.figures.looking import Beside, Look
from app.figures.remarks import remarks, slowness
from app.figures.shapes import PartitionFigures, RunFigures
from app.figures.speedometer import Speedometer, restarts, running_ratio
from app.ledger import runs, workers
from app.ledger.db import Ledger
from app.ledger.progress import shares_of
from app.settings import Settings

_NOTHING_BESIDE = Beside()


def collect(
    ledger: Ledger,
    run: RunView,
    speedometer: Speedometer | None,
    settings: Settings,
    clock: Clock,
    beside: Beside = _NOTHING_BESIDE,
) -> RunFigures:
    """Return the figures of a run as they are now; its history (sparks, means) is not in them."""
    is_served = speedometer is not None
    look = Look(
        run=run,
        spec=from_json(run.spec_json),
        now=clock.now(),
        at_s=clock.monotonic(),
        partitions=runs.partitions_of(ledger, run.id),
        # the rows that a dead service left behind say nothing of now
        workers=workers.living(ledger, run.id) if is_served else [],
        shares=shares_of(ledger, run.id) if is_served else {},
        settings=settings,
        beside=beside,
        is_served=is_served,
    )
    views = [_outlook(ledger, look, each, speedometer) for each in look.partitions]
    found = conditions_of(ledger, look, views, speedometer)
    silence = _silence(run, found)
    ends = _ends(look, views, speedometer, silence, found)
    landing_of = landings(run, views, ends.partitions, look.now)
    shown = cut_at_deadlines(run, views, ends, look.now)
    figures = [
        replace(
            _partition(look, view, speedometer, silence, shown),
            deadline_at=view.partition.deadline_at,
            ends=landing_of[view.partition.name],
        )
        for view in views
    ]
    speeds = [each.speed_tokens_per_s for each in figures if each.speed_tokens_per_s is not None]
    return RunFigures(
        run_id=run.id,
        name=run.name,
        state=run.state,
        state_since=run.state_since,
        reason=run.reason,
        output_dir=run.output_dir,
        at=look.now,
        percent=_run_percent(look.partitions),
        token_budget_tokens=run.token_budget,
        speed_tokens_per_s=sum(speeds) if speeds else None,
        time_left=shown.run,
        decided_by=shown.decided_by,
        conditions=found,
        partitions=tuple(figures),
        is_served=look.is_served,
        created_at=run.created_at,
        heartbeat_at=heartbeat_at(ledger, look),
        servers=look.servers,
        deadline_at=run.deadline_at,
        ends=run_landing(run, views, ends.run, look.now),
    )


def _used(look: Look) -> int:
    return sum(each.tokens.used for each in look.partitions)


def _outlook(
    ledger: Ledger, look: Look, partition: PartitionView, speedometer: Speedometer | None
) -> Outlook:
    needed = speedometer is not None and not partition.is_over
    if speedometer is None or not needed or look.run.state is not RunState.RUNNING:
        return outlook(partition, None)
    return outlook(partition, speedometer.known(ledger, partition, look.at_s))


def _ends(
    look: Look,
    views: Sequence[Outlook],
    speedometer: Speedometer | None,
    silence: str | None,
    found: Sequence[Condition],
) -> Ends:
    run, at_s = look.run, look.at_s
    facts = Facts(
        views=views,
        spec=look.spec,
        at_s=at_s,
        silence=silence,
        silences=_silences(look, views, speedometer, found),
        budget_tokens=run.token_budget,
        budget_left_tokens=None if run.token_budget is None else run.token_budget - _used(look),
    )
    if speedometer is None:
        return EndMemory().ends(facts, lambda: Seen(observed_s=0.0, n_changes=0))
    speedometer.see_servers(run.id, running_ratio(look.servers), restarts(look.servers))
    return speedometer.ends_of(run.id).ends(facts, lambda: speedometer.seen(run.id, at_s))


def _silences(
    look: Look,
    views: Sequence[Outlook],
    speedometer: Speedometer | None,
    conditions: Sequence[Condition],
) -> dict[str, str]:
    """Return why single partitions have no end: what went before says nothing of when they do."""
    found: dict[str, str] = {}
    stalled = {c.partition for c in conditions if c.kind is ConditionKind.PARTITION_STALLED}
    for view in views:
        partition = view.partition
        if not view.goes_on:
            continue
        if _concurrency(look, partition) == 0:
            found[partition.name] = NO_SHARE
        elif partition.name in stalled:
            found[partition.name] = STALLED
        elif speedometer is not None and speedometer.shown(partition.id) == 0.0:
            found[partition.name] = "no tokens are coming"
    return found


def _run_percent(partitions: Sequence[PartitionView]) -> int:
    weights = [wanted_samples(each.counts, each.goal_samples) for each in partitions]
    if not sum(weights):
        return 100 if all(each.is_over for each in partitions) else 0
    shares = map(progress_share, partitions)
    mean = sum(share * w for share, w in zip(shares, weights, strict=True)) / sum(weights)
    return 100 if all(each.is_over for each in partitions) else min(99, int(100 * mean))


def _silence(run: RunView, found: Sequence[Condition]) -> str | None:
    """Return why no tokens can come now, None if they can."""
    if run.state is not RunState.RUNNING:
        return str(run.state)
    kinds = {condition.kind for condition in found}
    silent = (
        ConditionKind.LEDGER_FULL,
        ConditionKind.WAITING_FOR_SERVER,
        ConditionKind.STALLED,
    )
    return next((str(kind) for kind in silent if kind in kinds), None)


def _partition(
    look: Look,
    view: Outlook,
    speedometer: Speedometer | None,
    silence: str | None,
    ends: Ends,
) -> PartitionFigures:
    partition = view.partition
    mine = [worker for worker in look.workers if worker.partition_id == partition.id]
    speed = speedometer.shown(partition.id) if speedometer else None
    if silence in (ConditionKind.STALLED, ConditionKind.WAITING_FOR_SERVER) and speed is not None:
        speed = 0.0  # an average that still holds tokens of before would hide it (prg-03)
    return PartitionFigures(
        id=partition.id,
        name=partition.name,
        class_name=partition.class_name,
        state=partition.state,
        state_since=partition.state_since,
        reason=partition.reason,
        intake=partition.intake,
        is_over=partition.is_over,
        percent=progress_percent(partition),
        counts=partition.counts,
        tokens=partition.tokens,
        reserved_tokens=partition.reserved_tokens,
        own_concurrency=partition.own_concurrency,
        token_budget_tokens=partition.token_budget,
        goal_samples=partition.goal_samples,
        budget_reached=partition.budget_reached,
        sealed_at=partition.sealed_at,
        n_in_flight=sum(worker.in_flight for worker in mine),
        speed_tokens_per_s=speed,
        time_left=ends.partitions[partition.name],
        last_token_at=max((w.last_token_at for w in mine if w.last_token_at), default=None),
        remarks=(*slowness(mine, look.settings, look.now), *remarks(partition, mine)),
        max_new_tokens=partition.max_new_tokens,
        concurrency_requests=_concurrency(look, partition),
    )


def _concurrency(look: Look, partition: PartitionView) -> int | None:
    if partition.own_concurrency is not None:
        return partition.own_concurrency
    return look.shares.get(partition.id)
