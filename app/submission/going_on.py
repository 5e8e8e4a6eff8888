"""A run that exists and is submitted again: what changed, what that needs, and its state.

Owns what may change and what may not. Everything is repeated from its beginning after a crash:
the new settings are stored last, so until then the old ones are compared again.
"""

from dataclasses import replace
from pathlib import Path

from app.core.conditions import SERVER_CHANGED
from app.core.spec import RunSpec, from_json, to_json
from app.core.states import RunState
from app.core.views import PartitionView, RunView
from app.errors import ConflictError
from app.ledger import runs
from app.ledger.activity import Deed, add
from app.ledger.orders import Order
from app.ledger.settings_of_runs import (
    add_partitions,
    forget_tokens,
    has_living_workers,
    set_prompts_path,
)
from app.submission.identity import Changes, Identity, changes_since, merged
from app.submission.limits import apply_limits
from app.submission.manifest import add_generation, entry_of
from app.submission.new_partitions import claim, new_rows, refuse_new, take_in
from app.submission.refusing import refuse_changes, refuse_run
from app.submission.request import Request
from app.submission.scanning import SCANNING, complete_scans

PAUSED_FOR_CHANGES = "its settings change"


class AtWorkError(ConflictError):
    """Changes were accepted, and workers that still use the old settings live."""


def go_on(request: Request, run: RunView, identity: Identity) -> RunView:
    """Let the run go on with what was submitted; ConflictError names everything against it."""
    ledger = request.ledger
    refuse_run(run, identity.spec)
    old = runs.partitions_of(ledger, run.id)
    refuse_new(ledger, run, identity.spec, old)
    claim(request, run, {one.name for one in old})
    rescanned = _redo_scans(request, run, old)
    changes = changes_since(run.fingerprint_json, identity, rescanned)
    old = runs.partitions_of(ledger, run.id)
    _refuse(request, run, changes, old)
    _follow(request, run, identity, changes, old)
    _add_new(request, run, identity, old)
    return _resumed(request, run)


def _redo_scans(request: Request, run: RunView, partitions: list[PartitionView]) -> frozenset[str]:
    """Finish what a death interrupted, with the replicas that the run began with."""
    for partition in partitions:
        path = request.report.prompts.get(partition.name)
        if partition.intake == SCANNING and path is not None:
            set_prompts_path(request.ledger, partition.id, str(path.absolute()))
    scanned = complete_scans(
        request.ledger, run, from_json(run.spec_json), request.clock, request.say
    )
    return frozenset(one.name for one in scanned)


def _refuse(
    request: Request, run: RunView, changes: Changes, partitions: list[PartitionView]
) -> None:
    refuse_changes(request.ledger, run, changes, partitions, accept_changes=request.accept_changes)
    if changes.sentences and has_living_workers(request.ledger, run.id):
        raise AtWorkError(
            f'run "{run.name}" is at work; its settings cannot change under it:'
            f" {'; '.join(changes.sentences)}",
            hint="Stop it first, then start it with --accept-changes",
        )


def _follow(
    request: Request,
    run: RunView,
    identity: Identity,
    changes: Changes,
    partitions: list[PartitionView],
) -> None:
    """Take over limits, then what decides answers; the stored spec is the last to change."""
    ledger, now = request.ledger, request.clock.now()
    gen_id, old_spec = run.gen_id, from_json(run.spec_json)
    order = Order(run_id=run.id, who=request.who, now=now)
    for each in apply_limits(request, order, run, identity.spec, partitions):
        request.say(f"{each.target}: {each.what} {each.old} -> {each.new}")
    for partition in partitions:
        path = request.report.prompts.get(partition.name)
        if path is not None:
            set_prompts_path(ledger, partition.id, str(path.absolute()))
        if changes.needs_new_ids:
            forget_tokens(ledger, partition.id)
    if changes.sentences:
        gen_id = identity.gen_id
        entry = entry_of(run.name, identity.parts, identity.facts)
        add_generation(Path(run.output_dir), gen_id, entry, changes.sentences, now)
        detail = "; ".join(changes.sentences)
        deed = Deed(who=request.who, event="changes accepted", detail=detail, run_id=run.id)
        add(ledger, deed, now)
    runs.set_identity(
        ledger,
        run.id,
        fingerprint_json=merged(run.fingerprint_json, identity),
        gen_id=gen_id,
        spec_json=to_json(_united(old_spec, identity.spec)),
    )


def _united(old: RunSpec, new: RunSpec) -> RunSpec:
    """Return the new spec with those partitions, and their classes, that only the run has."""
    return replace(
        new,
        classes={**old.classes, **new.classes},
        partitions={**old.partitions, **new.partitions},
    )


def _add_new(
    request: Request, run: RunView, identity: Identity, partitions: list[PartitionView]
) -> None:
    """Add partitions that the run does not have yet, and tell of those that were left out."""
    known = {one.name for one in partitions}
    rows = new_rows(request, run, identity.spec, known)
    if rows:
        add_partitions(request.ledger, run.id, rows, request.clock.now())
        take_in(request, run, identity.spec, rows)
    absent = [name for name in known if name not in identity.spec.partitions]
    if absent:
        request.say(f"also in this run, and going on as they were: {', '.join(sorted(absent))}")


def _resumed(request: Request, run: RunView) -> RunView:
    """Set the run going if it was stopped, or finished and has work again."""
    ledger = request.ledger
    now_is = runs.get_run(ledger, run.id)
    has_work = not all(one.is_over for one in runs.partitions_of(ledger, run.id))
    if request.leaves_stopped(now_is):
        request.say(f'run "{run.name}" is stopped: {now_is.reason}; start it again to go on')
    elif now_is.state is RunState.STOPPED or (now_is.state is RunState.FINISHED and has_work):
        deed = Deed(who=request.who, event="run resumed", run_id=run.id)
        runs.move_run(ledger, run.id, "resume", deed, request.clock.now())
    elif now_is.state is RunState.PAUSED and now_is.reason.startswith(SERVER_CHANGED):
        # held for its server, which is the right one again, or was accepted as it is now
        deed = Deed(who=request.who, event="run resumed", run_id=run.id)
        runs.move_run(ledger, run.id, "resume", deed, request.clock.now())
    elif now_is.state is RunState.PAUSED and now_is.reason != PAUSED_FOR_CHANGES:
        request.say(f'run "{run.name}" is paused and stays so; resume it to go on')
    elif now_is.state is RunState.FINISHED:
        request.say(f'run "{run.name}" is finished, and nothing is left to do')
    return runs.get_run(ledger, run.id)
