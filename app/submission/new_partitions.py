"""Partitions that a run gets while it exists: what they are checked for, claimed, and taken in.

Shared by a run that is submitted again and by partitions that are added to one. Invariant: a folder
that already holds answers of somebody else is refused before anything of a new partition stands in
the ledger.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from app.core.spec import RunSpec
from app.core.views import PartitionView, RunView
from app.files.ownership import claim_output
from app.ledger.db import Ledger
from app.ledger.runs import NewPartition
from app.submission.partitions import new_partition
from app.submission.refusing import refuse_taken
from app.submission.request import Request
from app.submission.scanning import complete_scans


def refuse_new(
    ledger: Ledger, run: RunView, spec: RunSpec, partitions: Sequence[PartitionView]
) -> None:
    """Refuse new partitions whose folder already holds somebody else's answers."""
    known = {each.name for each in partitions}
    new = [name for name in spec.partitions if name not in known]
    refuse_taken(ledger, Path(run.output_dir), new)


def new_rows(
    request: Request, run: RunView, spec: RunSpec, known: Collection[str]
) -> list[NewPartition]:
    """Return rows of what the run does not have yet, the folder claimed for them.

    `spec` has its limits filled in.
    """
    new = {name: one for name, one in spec.partitions.items() if name not in known}
    if not new:
        return []
    now = request.clock.now()
    rows = [
        new_partition(name, one, request.report.prompts[name], now) for name, one in new.items()
    ]
    claim(request, run, {*known, *new})
    return rows


def take_in(request: Request, run: RunView, spec: RunSpec, rows: Sequence[NewPartition]) -> None:
    """Read the prompts of what was just added, and tell of it."""
    request.say(f"new in this run: {', '.join(each.name for each in rows)}")
    complete_scans(request.ledger, run, spec, request.clock, request.say)


def claim(request: Request, run: RunView, partitions: Collection[str]) -> None:
    """Write down that the run owns these partitions of its output folder."""
    claim_output(
        Path(run.output_dir),
        home=request.home,
        run_id=run.id,
        run_name=run.name,
        partitions=partitions,
    )
