"""Creating a run, or letting one that exists go on with what was submitted.

Owns the order of steps for a new run: row, claim of the folder, manifest, scan. What happens to
one that exists is `going_on`. Whoever calls it lets one submission in at a time.
"""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path

import orjson

from app.clock import Clock
from app.core.spec import RunSpec
from app.core.states import RunState
from app.core.types import RunId
from app.core.views import RunView
from app.errors import InputError, LongwatchError
from app.files.ownership import claim_output
from app.ledger import runs
from app.ledger.activity import Deed
from app.ledger.db import Ledger
from app.ledger.runs import NewRun
from app.ledger.servers import remember_server
from app.ledger.settings_of_runs import has_living_workers
from app.preflight import Report
from app.submission.going_on import PAUSED_FOR_CHANGES, AtWorkError, go_on
from app.submission.identity import Identity, identity_now
from app.submission.manifest import add_generation, entry_of
from app.submission.partitions import moment_of, new_partition
from app.submission.refusing import refuse_taken
from app.submission.request import Request, on_loop
from app.submission.scanning import complete_scans
from app.threads import in_thread

WORKERS_WAIT_S = 30.0
_LOOK_S = 0.1


async def submit(  # noqa: PLR0913 - what is submitted, to where and by whom: each once
    ledger: Ledger,
    home: Path,
    spec: RunSpec,
    report: Report,
    *,
    accept_changes: bool,
    who: str,
    clock: Clock,
    say: Callable[[str], None],
    started_at: datetime | None = None,
) -> RunView:
    """Return the run, scanned and ready for workers.

    ConflictError if the run exists elsewhere, or with other settings that were not accepted, or
    if the folder is somebody else's; InputError if prompts cannot be read, and then nothing of a
    new run is left. `say` is called on the caller's loop. `started_at`: see `Request`.
    """
    if report.errors:
        raise InputError("; ".join(report.errors))
    request = Request(
        ledger=ledger,
        home=home,
        report=report,
        accept_changes=accept_changes,
        who=who,
        clock=clock,
        say=on_loop(say),
        started_at=started_at,
    )
    work = partial(_submit, request, spec)
    try:
        return await in_thread(work)
    except AtWorkError as error:
        at_work = error
    paused = await in_thread(partial(_pause, request, spec.name))
    try:
        await _wait_for_workers(request, paused.id, at_work)
        return await in_thread(work)
    finally:
        await in_thread(partial(_resume, request, paused.id))


async def _wait_for_workers(request: Request, run_id: RunId, at_work: AtWorkError) -> None:
    """Wait until the supervisor has taken the paused run's workers back."""
    deadline_s = request.clock.monotonic() + WORKERS_WAIT_S
    while await in_thread(partial(has_living_workers, request.ledger, run_id)):
        if request.clock.monotonic() >= deadline_s:
            raise at_work
        await request.clock.sleep(_LOOK_S)


def _pause(request: Request, run_name: str) -> RunView:
    """Pause the run, so that no worker goes on with settings that are about to change."""
    run = next(one for one in runs.list_runs(request.ledger) if one.name == run_name)
    if run.state is RunState.RUNNING:
        deed = Deed(who=request.who, event="run paused", detail=PAUSED_FOR_CHANGES, run_id=run.id)
        runs.move_run(request.ledger, run.id, "pause", deed, request.clock.now())
    return run


def _resume(request: Request, run_id: RunId) -> None:
    run = runs.get_run(request.ledger, run_id)
    if run.state is RunState.PAUSED and run.reason == PAUSED_FOR_CHANGES:
        deed = Deed(who=request.who, event="run resumed", run_id=run_id)
        runs.move_run(request.ledger, run_id, "resume", deed, request.clock.now())


def _submit(request: Request, spec: RunSpec) -> RunView:
    ledger = request.ledger
    now = request.clock.now()
    for url, facts in request.report.facts.items():
        remember_server(ledger, url, orjson.dumps(asdict(facts), default=dict).decode(), now)
    run = next((run for run in runs.list_runs(ledger) if run.name == spec.name), None)
    stored_json = "{}" if run is None else run.fingerprint_json
    identity = identity_now(spec, request.report, stored_json, now)
    return _begin(request, identity) if run is None else go_on(request, run, identity)


def _begin(request: Request, identity: Identity) -> RunView:
    """Create a run, whole or not at all."""
    ledger, spec = request.ledger, identity.spec
    output_dir = Path(spec.output_dir).absolute()
    refuse_taken(ledger, output_dir, list(spec.partitions))
    now = request.clock.now()
    run_id = runs.create_run(
        ledger,
        NewRun(
            name=spec.name,
            spec_json=identity.spec_json,
            output_dir=str(output_dir),
            token_budget=spec.token_budget_tokens,
            fingerprint_json=identity.as_json,
            gen_id=identity.gen_id,
            deadline_at=moment_of(spec.deadline, now, "the run"),
        ),
        [
            new_partition(name, partition, request.report.prompts[name], now)
            for name, partition in spec.partitions.items()
        ],
        now,
    )
    try:
        # Without partitions first: it tells at once whether the folder is another home's, and
        # leaves no claim behind if the scan ends the run.
        claim_output(output_dir, home=request.home, run_id=run_id, run_name=spec.name)
        _scan(request, identity, run_id, output_dir)
        claim_output(
            output_dir,
            home=request.home,
            run_id=run_id,
            run_name=spec.name,
            partitions=spec.partitions,
        )
    except LongwatchError:
        runs.delete_run(ledger, run_id)
        raise
    return runs.get_run(ledger, run_id)


def _scan(request: Request, identity: Identity, run_id: RunId, output_dir: Path) -> None:
    entry = entry_of(identity.spec.name, identity.parts, identity.facts)
    add_generation(output_dir, identity.gen_id, entry, (), request.clock.now())
    run = runs.get_run(request.ledger, run_id)
    complete_scans(request.ledger, run, identity.spec, request.clock, request.say)
