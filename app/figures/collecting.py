"""Reads one run's figures from the ledger and what a speedometer remembers of it.

Owns the assembly; no figure is computed twice elsewhere. Blocks for a moment (ledger, free space):
callers on an event loop use a thread. Without a speedometer (no service) speeds are not known.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from app.clock import Clock
from app.core.conditions import Condition, ConditionKind, Facts, Thresholds, conditions
from app.core.estimate import Remaining, Speed, wanted_samples
from app.core.spec import RunSpec, from_json
from app.core.states import PartitionState, RunState
from app.core.views import PartitionView, RunView, WorkerView
from app.figures.forecasting import (
    Outlook,
    outlook,
    partition_end,
    progress_percent,
    run_end,
)
from app.figures.remarks import remarks, slowness
from app.figures.shapes import PartitionFigures, RunFigures
from app.figures.speedometer import RunMemory, Speedometer
from app.files.space import free_bytes
from app.ledger import runs, servers, workers
from app.ledger.db import Ledger
from app.settings import Settings

_FREE_FRESH_S = 5.0
# a token of an answer takes about so much of a line: its id in digits, a comma, its text
_BYTES_PER_TOKEN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Everything read at one moment."""

    run: RunView
    spec: RunSpec
    now: datetime
    at_s: float
    partitions: Sequence[PartitionView]
    workers: Sequence[WorkerView]
    settings: Settings
    is_served: bool


def collect(
    ledger: Ledger,
    run: RunView,
    speedometer: Speedometer | None,
    settings: Settings,
    clock: Clock,
) -> RunFigures:
    """Return the figures of a run as they are now."""
    look = _Look(
        run=run,
        spec=from_json(run.spec_json),
        now=clock.now(),
        at_s=clock.monotonic(),
        partitions=runs.partitions_of(ledger, run.id),
        # the rows that a dead service left behind say nothing of now
        workers=workers.living(ledger, run.id) if speedometer is not None else [],
        settings=settings,
        is_served=speedometer is not None,
    )
    views = [_outlook(ledger, look, each, speedometer) for each in look.partitions]
    found = _conditions(ledger, look, views, speedometer, settings)
    silence = _silence(run, found)
    figures = [_partition(look, view, speedometer, silence) for view in views]
    speeds = [each.speed_tokens_per_s for each in figures if each.speed_tokens_per_s is not None]
    room = None if run.token_budget is None else run.token_budget - _used(look)
    left, decided_by = run_end(views, silence, room)
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
        time_left=left,
        decided_by=decided_by,
        conditions=found,
        partitions=tuple(figures),
        is_served=look.is_served,
    )


def _used(look: _Look) -> int:
    return sum(each.tokens.used for each in look.partitions)


def _outlook(
    ledger: Ledger, look: _Look, partition: PartitionView, speedometer: Speedometer | None
) -> Outlook:
    if speedometer is None:
        return outlook(partition, None, Speed(tokens_per_s=0.0, observed_s=0.0))
    needed = not partition.is_over and look.run.state is RunState.RUNNING
    known = speedometer.known(ledger, partition, look.at_s) if needed else None
    return outlook(partition, known, speedometer.for_estimate(partition.id))


def _run_percent(partitions: Sequence[PartitionView]) -> int:
    weights = [wanted_samples(each.counts, each.goal_samples) for each in partitions]
    if not sum(weights):
        return 100 if all(each.is_over for each in partitions) else 0
    shares = [progress_percent(each) for each in partitions]
    mean = sum(s * w for s, w in zip(shares, weights, strict=True)) // sum(weights)
    return mean if all(each.is_over for each in partitions) else min(99, mean)


def _silence(run: RunView, found: Sequence[Condition]) -> str | None:
    """Return why no tokens can come now, None if they can."""
    if run.state is not RunState.RUNNING:
        return str(run.state)
    kinds = {condition.kind for condition in found}
    silent = (ConditionKind.WAITING_FOR_SERVER, ConditionKind.STALLED)
    return next((str(kind) for kind in silent if kind in kinds), None)


def _partition(
    look: _Look, view: Outlook, speedometer: Speedometer | None, silence: str | None
) -> PartitionFigures:
    partition = view.partition
    mine = [worker for worker in look.workers if worker.partition_id == partition.id]
    speed = speedometer.shown(partition.id) if speedometer else None
    if silence == ConditionKind.STALLED and speed is not None:
        speed = 0.0  # an average that still holds tokens of before would hide it (prg-03)
    return PartitionFigures(
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
        time_left=partition_end(view, silence),
        last_token_at=max((w.last_token_at for w in mine if w.last_token_at), default=None),
        remarks=(*slowness(mine, look.settings, look.now), *remarks(partition, mine)),
    )


def _conditions(
    ledger: Ledger,
    look: _Look,
    views: Sequence[Outlook],
    speedometer: Speedometer | None,
    settings: Settings,
) -> tuple[Condition, ...]:
    memory = speedometer.memory(look.run.id) if speedometer else RunMemory()
    flying_since_s = speedometer.in_flight_since_s(look.run.id) if speedometer else None
    tokens = [worker.last_token_at for worker in look.workers if worker.last_token_at]
    good = [
        view.last_good_at
        for view in servers.servers(ledger)
        if view.url in look.spec.server_urls and view.last_good_at
    ]
    left = [view.left for view in views if isinstance(view.left, Remaining)]
    facts = Facts(
        n_in_flight=sum(worker.in_flight for worker in look.workers),
        in_flight_since=None
        if flying_since_s is None
        else look.now - timedelta(seconds=look.at_s - flying_since_s),
        last_token_at=max(tokens, default=None),
        server_waiting_since=_waiting_since(look),
        last_good_answer_at=max(good + tokens, default=None),
        output_folder=look.run.output_dir,
        free_bytes=_free(look, memory, settings),
        needed_bytes=int(sum(each.tokens for each in left) * _BYTES_PER_TOKEN),
        not_served_since=_not_served_since(ledger, look),
        serve_command=_serve_command(settings),
        all_paused_since=_all_paused_since(look),
        resume_command=_resume_command(look),
    )
    thresholds = Thresholds(
        stall_after_s=look.spec.stall_after_s, disk_low_bytes=settings.disk_low_bytes
    )
    memory.conditions = conditions(facts, thresholds, look.now, memory.conditions)
    return memory.conditions


def _not_served_since(ledger: Ledger, look: _Look) -> datetime | None:
    """Return when the last service was last seen at work on a run that should go on."""
    if look.is_served or look.run.state is not RunState.RUNNING:
        return None
    seen = workers.last_sign_of(ledger, look.run.id, look.settings.lease_s)
    return min(look.now, max(seen or look.run.state_since, look.run.state_since))


def _serve_command(settings: Settings) -> str:
    is_default = settings.home == type(settings).model_fields["home"].default
    where = "" if is_default else f" --home {shlex.quote(str(settings.home))}"
    return f"longwatch serve{where}"


def _resume_command(look: _Look) -> str:
    """Return the order; without a service it is only written down until one is started."""
    order = f"longwatch resume {shlex.quote(look.run.name)}"
    return order if look.is_served else f"{order}, then {_serve_command(look.settings)}"


def _all_paused_since(look: _Look) -> datetime | None:
    """Return since when nothing may go on, None if something may or nothing is left."""
    left = [each for each in look.partitions if not each.is_over]
    if left and look.run.state is RunState.PAUSED:
        return look.run.state_since
    paused = [each.state_since for each in left if each.state is PartitionState.PAUSED]
    is_all = paused and len(paused) == len(left) and look.run.state is RunState.RUNNING
    return max(paused) if is_all else None


def _waiting_since(look: _Look) -> datetime | None:
    """Return since when every worker waits for its servers, None if one does not."""
    since = [worker.waiting_since for worker in look.workers]
    known = [moment for moment in since if moment is not None]
    return min(known) if known and len(known) == len(since) else None


def _free(look: _Look, memory: RunMemory, settings: Settings) -> int | None:
    last = memory.free_bytes_at_s
    if last is None or look.at_s - last >= _FREE_FRESH_S:
        memory.free_bytes = free_bytes(Path(look.run.output_dir), settings.space_timeout_s)
        memory.free_bytes_at_s = look.at_s
    return memory.free_bytes
