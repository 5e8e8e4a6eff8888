"""What a run's conditions are derived from: everything seen at one moment, as facts.

Owns the reading of what lies beside the run's own rows: its servers' last sign, the free space, who
pauses or serves it. What the conditions are is `core/conditions.py`'s.
"""

import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from app.core.conditions import SERVER_CHANGED, Condition
from app.core.conditions_of_run import RunFacts, Thresholds, run_conditions
from app.core.estimate import Remaining
from app.core.states import PartitionState, RunState
from app.core.supervision import HALTED
from app.figures.forecasting import Outlook
from app.figures.knowing_partitions import conditions_of_partitions
from app.figures.looking import Look
from app.figures.remarks import unrecorded_s
from app.figures.speedometer import RunMemory, Speedometer
from app.files.space import free_bytes
from app.ledger import servers, workers
from app.ledger.db import Ledger
from app.settings import Settings

_FREE_FRESH_S = 5.0
_HANGS_AFTER_S = 10.0
# a token of an answer takes about so much of a line: its id in digits, a comma, its text
_BYTES_PER_TOKEN = 12


def conditions_of(
    ledger: Ledger, look: Look, views: Sequence[Outlook], speedometer: Speedometer | None
) -> tuple[Condition, ...]:
    """Return the conditions that hold; the speedometer remembers them for the next look."""
    memory = speedometer.memory(look.run.id) if speedometer else RunMemory()
    flying_since_s = speedometer.in_flight_since_s(look.run.id) if speedometer else None
    memory.unrecorded_s = unrecorded_s(look.workers, look.settings, look.now)
    if memory.unrecorded_s:
        memory.unrecorded_at = look.now
    changed_since, change = _server_change(look)
    tokens = [worker.last_token_at for worker in look.workers if worker.last_token_at]
    left = [view.left for view in views if isinstance(view.left, Remaining)]
    facts = RunFacts(
        n_in_flight=sum(worker.in_flight for worker in look.workers),
        in_flight_since=None
        if flying_since_s is None
        else look.now - timedelta(seconds=look.at_s - flying_since_s),
        last_token_at=max(tokens, default=None),
        server_progress_at=_progress_at(look),
        server_waiting_since=_waiting_since(look),
        last_good_answer_at=max(_good_at(ledger, look) + tokens, default=None),
        output_folder=look.run.output_dir,
        free_bytes=_free(look, memory),
        needed_bytes=int(sum(each.tokens for each in left) * _BYTES_PER_TOKEN),
        not_served_since=_not_served_since(ledger, look),
        serve_command=_serve_command(look.settings),
        all_paused_since=_all_paused_since(look),
        resume_command=_resume_command(look),
        unrecorded_s=memory.unrecorded_s,
        unrecorded_at=memory.unrecorded_at,
        server_change=change,
        server_changed_since=changed_since,
        ledger=look.beside.ledger,
    )
    thresholds = Thresholds(
        stall_after_s=look.spec.stall_after_s,
        disk_low_bytes=look.settings.disk_low_bytes,
        ledger_log_warn_bytes=look.settings.ledger_log_warn_bytes,
        storage_slow_after_s=look.settings.storage_slow_after_s,
        waiting_after_s=look.settings.waiting_after_s,
    )
    before = memory.conditions
    of_run = run_conditions(facts, thresholds, look.now, before)
    recent = memory.recent if speedometer else None
    of_partitions = conditions_of_partitions(ledger, look, recent, of_run, before)
    memory.conditions = (*of_run, *of_partitions)
    return memory.conditions


def _server_change(look: Look) -> tuple[datetime | None, str]:
    """Return since when the run is held for its server, and the difference in words."""
    reason = look.run.reason.removeprefix(HALTED)
    if look.run.state is RunState.RUNNING or not reason.startswith(SERVER_CHANGED):
        return None, ""
    return look.run.state_since, reason.removeprefix(SERVER_CHANGED)


def heartbeat_at(ledger: Ledger, look: Look) -> datetime | None:
    """Return when the run's workers last recorded something; without any, the supervisor did."""
    lease = timedelta(seconds=look.settings.lease_s)
    beats = [w.lease_expires_at - lease for w in look.workers if w.state != "starting"]
    if beats:
        return max(beats)
    if look.is_served:
        return look.beside.supervised_at
    return workers.last_sign_of(ledger, look.run.id, look.settings.lease_s)


def _progress_at(look: Look) -> datetime | None:
    moved = [load.progressed_at for load in look.servers if load.progressed_at]
    return max(moved, default=None)


def _good_at(ledger: Ledger, look: Look) -> list[datetime]:
    known = [
        view.last_good_at
        for view in servers.servers(ledger)
        if view.url in look.spec.server_urls and view.last_good_at
    ]
    return known + [load.at for load in look.servers if load.at]


def _not_served_since(ledger: Ledger, look: Look) -> datetime | None:
    """Return when the last service was last seen at work on a run that should go on."""
    if look.is_served or look.run.state is not RunState.RUNNING:
        return None
    seen = workers.last_sign_of(ledger, look.run.id, look.settings.lease_s)
    return min(look.now, max(seen or look.run.state_since, look.run.state_since))


def _serve_command(settings: Settings) -> str:
    is_default = settings.home == type(settings).model_fields["home"].default
    where = "" if is_default else f" --home {shlex.quote(str(settings.home))}"
    return f"longwatch serve{where}"


def _resume_command(look: Look) -> str:
    """Return the order; without a service it is only written down until one is started."""
    order = f"longwatch resume {shlex.quote(look.run.name)}"
    return order if look.is_served else f"{order}, then {_serve_command(look.settings)}"


def _all_paused_since(look: Look) -> datetime | None:
    """Return since when nothing may go on, None if something may or nothing is left."""
    left = [each for each in look.partitions if not each.is_over]
    if left and look.run.state is RunState.PAUSED:
        return look.run.state_since
    paused = [each.state_since for each in left if each.state is PartitionState.PAUSED]
    is_all = paused and len(paused) == len(left) and look.run.state is RunState.RUNNING
    return max(paused) if is_all else None


def _waiting_since(look: Look) -> datetime | None:
    """Return since when every worker waits for its servers, None if one does not."""
    since = [worker.waiting_since for worker in look.workers]
    known = [moment for moment in since if moment is not None]
    if known and len(known) == len(since):
        return min(known)
    return _hanging_since(look)


def _hanging_since(look: Look) -> datetime | None:
    """Return since when no server answers anything: connections of a hung one stay open."""
    away = [load.away_since for load in look.servers if load.away_since is not None]
    if not look.workers or not away or len(away) < len(look.servers):
        return None
    since = max([*away, *(w.last_token_at for w in look.workers if w.last_token_at)])
    return since if (look.now - since).total_seconds() >= _HANGS_AFTER_S else None


def _free(look: Look, memory: RunMemory) -> int | None:
    last = memory.free_bytes_at_s
    if last is None or look.at_s - last >= _FREE_FRESH_S:
        folder = Path(look.run.output_dir)
        memory.free_bytes = free_bytes(folder, look.settings.space_timeout_s)
        memory.free_bytes_at_s = look.at_s
    return memory.free_bytes
