"""What a submission is refused for by the home and the output folder: the one place of these words.

Owns the rule that a run keeps its prompts, and every sentence of a refusal. Invariant: nothing
here writes or locks, so `check` asks the same as a start; a living service may own the home.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from app.core.format import plural
from app.core.spec import RunSpec
from app.core.states import RunState
from app.core.views import PartitionView, RunView
from app.errors import ConflictError, LongwatchError
from app.files.ownership import check_claim
from app.ledger import runs
from app.ledger.db import Ledger
from app.ledger.migrate import is_newest
from app.ledger.settings_of_runs import n_records
from app.preflight import Report
from app.preflight.folders import LEDGER_NAME
from app.submission.identity import REPLICAS, Changes, changes_since, identity_now
from app.submission.partitions import moments_anew, moments_of, same_folder
from app.submission.scanning import SCANNING

_KEEPS = "a run keeps the prompts it began with"


def refusals(home: Path, spec: RunSpec, report: Report, now: datetime) -> list[str]:
    """Return why a start would be refused though the preflight found nothing; changes nothing."""
    path = home / LEDGER_NAME
    try:
        if not is_newest(path):
            _refuse_new(None, home, spec, report, now)
            return []
        with closing(Ledger(path)) as ledger:
            known = [run for run in runs.list_runs(ledger) if run.name == spec.name]
            if not known:
                _refuse_new(ledger, home, spec, report, now)
            for run in known:
                _refuse_again(ledger, home, spec, report, (run, now))
    except LongwatchError as error:
        return [str(error)]
    except OSError as error:
        return [] if report.errors else [f"cannot look into {home}: {error.strerror}"]
    return []


def _refuse_new(
    ledger: Ledger | None, home: Path, spec: RunSpec, report: Report, now: datetime
) -> None:
    output_dir = Path(spec.output_dir).absolute()
    moments_of(replace(spec, partitions=report.partitions), now)
    check_claim(output_dir, home=home, run_id=None, partitions=report.partitions)
    refuse_taken(ledger, output_dir, list(report.partitions))


def _refuse_again(
    ledger: Ledger, home: Path, spec: RunSpec, report: Report, which: tuple[RunView, datetime]
) -> None:
    run, now = which
    refuse_run(run, spec)
    partitions = runs.partitions_of(ledger, run.id)
    resolved = replace(spec, partitions=report.partitions)
    moments_anew(run, partitions, resolved, now, leaves_stopped=False)
    names = {*(each.name for each in partitions), *report.partitions}
    output_dir = Path(run.output_dir)
    refuse_taken(ledger, output_dir, sorted(names - {each.name for each in partitions}))
    check_claim(output_dir, home=home, run_id=run.id, partitions=names)
    if not report.facts:
        return  # without a server there is no telling; that it is away is an error of its own
    unread = frozenset(one.name for one in partitions if one.intake == SCANNING)
    changes = changes_since(
        run.fingerprint_json, identity_now(spec, report, run.fingerprint_json, now), unread
    )
    refuse_changes(ledger, run, changes, partitions, accept_changes=False)


def refuse_run(run: RunView, spec: RunSpec) -> None:
    """Refuse a run of this name that writes elsewhere, or is about to stop."""
    if not same_folder(run.output_dir, spec.output_dir):
        raise ConflictError(
            f'run "{run.name}" writes into {run.output_dir}, not {spec.output_dir}',
            hint="Give this one another name, or that output folder",
        )
    if run.state is RunState.STOPPING:
        raise ConflictError(f'run "{run.name}" is stopping', hint="Start it again when it has")


def refuse_changes(
    ledger: Ledger,
    run: RunView,
    changes: Changes,
    partitions: Sequence[PartitionView],
    *,
    accept_changes: bool,
) -> None:
    """Refuse what changed and was not accepted, and what never can be."""
    prompts = changed_prompts(ledger, changes, partitions)
    listed = "; ".join([*changes.sentences, *prompts])
    if prompts and (accept_changes or not changes.sentences):
        raise ConflictError(
            f"{'; '.join(prompts)}: {_KEEPS}",
            hint="Restore the file, or start another run under another name",
        )
    if not accept_changes and listed:
        more = f" ({_KEEPS}: restore the file first)" if prompts else ""
        raise ConflictError(
            f'run "{run.name}" was started otherwise: {listed}',
            hint=f"Start it as before, give another name, or go on with --accept-changes{more}",
        )
    if REPLICAS in changes.names:
        raise ConflictError(
            f'run "{run.name}" cannot change {REPLICAS}: {listed}', hint="Give another name"
        )


def changed_prompts(
    ledger: Ledger, changes: Changes, partitions: Sequence[PartitionView]
) -> list[str]:
    """Return a sentence for each partition of the run whose prompt file is not as it was."""
    ids = {each.name: each.id for each in partitions}
    return [
        f"the prompts of {name} changed since the run took them in"
        f" ({_then_and_now(n_records(ledger, ids[name]), sizes)})"
        for name, sizes in changes.prompts.items()
        if name in ids
    ]


def _then_and_now(records: int, sizes: tuple[int | None, int | None]) -> str:
    then, now = sizes
    said = f"{plural(records, 'record')} then"
    if then is None or now is None:
        return said
    if then == now:
        return f"{said}; the file has {now:,} bytes as before, but others"
    return f"{said}; the file was {then:,} bytes, now {now:,}"


def refuse_taken(ledger: Ledger | None, output_dir: Path, partitions: Sequence[str]) -> None:
    """Refuse a folder whose answers would be replaced: of another run, or of nobody we know."""
    if ledger is not None:
        _refuse_shared(ledger, output_dir, partitions)
    for name in partitions:
        found = sorted((output_dir / name).glob("responses*.jsonl"))
        if found:
            raise ConflictError(
                f"{found[0]} is there already and belongs to no run of this home",
                hint="Move it away, or choose another output folder",
            )


def _refuse_shared(ledger: Ledger, output_dir: Path, partitions: Sequence[str]) -> None:
    for run in runs.list_runs(ledger):
        if not same_folder(run.output_dir, output_dir):
            continue
        theirs = {one.name for one in runs.partitions_of(ledger, run.id)}
        shared = [name for name in partitions if name in theirs]
        if shared:
            raise ConflictError(
                f'{output_dir} already holds {", ".join(shared)} of run {run.id} "{run.name}"',
                hint="Go on with that run by its name, or choose another output folder",
            )
