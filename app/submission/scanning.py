"""Scanning the partitions of a run that are not scanned yet, and telling what was found.

Owns the load report: a line for people, and an activity entry. The scanning itself is
`app.intake`. Runs in a thread, one partition after another.
"""

from collections.abc import Callable
from pathlib import Path

from app.clock import Clock
from app.core.spec import RunSpec
from app.core.views import PartitionView, RunView
from app.intake import scan_partition
from app.ledger import runs
from app.ledger.activity import Deed, add
from app.ledger.db import Ledger
from app.reports import write_rejected

SCANNING = "scanning"
Say = Callable[[str], None]


def complete_scans(
    ledger: Ledger, run: RunView, spec: RunSpec, clock: Clock, say: Say
) -> list[PartitionView]:
    """Scan what is not scanned, from its beginning; return those partitions.

    InputError if a prompt file cannot be read to its end; its partition stays `scanning`.
    """
    open_ones = [one for one in runs.partitions_of(ledger, run.id) if one.intake == SCANNING]
    for partition in open_ones:
        report = scan_partition(ledger, partition, spec, say)
        detail = report.in_words()
        say(detail)
        deed = Deed(
            who="system",
            event="prompts read",
            detail=detail,
            run_id=run.id,
            partition_id=partition.id,
        )
        add(ledger, deed, clock.now())
        if report.n_rejected:
            write_rejected(ledger, partition, Path(run.output_dir) / partition.name)
    return open_ones
