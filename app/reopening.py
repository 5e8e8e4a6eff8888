"""What a service does first with what an earlier one left, however that ended.

Order: bury the workers that died with it, put back what nobody runs, finish scans that died in the
middle, make files and ledger agree, remove what sealed outputs have replaced. Called under the
home's lock, before any worker is started. Safe to die in, and to repeat.
"""

import logging
from pathlib import Path

from app.clock import Clock
from app.core.spec import from_json
from app.core.views import PartitionView, RunView
from app.errors import InputError
from app.events import Event, Observer, Recovered, ServiceTrouble
from app.files.sealed import read_manifest
from app.ledger import runs, workers
from app.ledger.activity import Deed, add
from app.ledger.db import Ledger
from app.ledger.strays import put_back_strays
from app.recovery import bury_worker, check_files, tell_lost
from app.sealing import remove_leftovers
from app.submission import MANIFEST_NAME, complete_scans

logger = logging.getLogger("longwatch")
_DIED = "the service died"


def reopen(ledger: Ledger, clock: Clock, observer: Observer) -> None:
    for worker in workers.living(ledger):
        partition = runs.get_partition(ledger, worker.partition_id)
        lost = bury_worker(ledger, partition, worker.id, _DIED, clock.now(), observer)
        tell_lost(ledger, partition, _DIED, lost, clock.now())
    strays = put_back_strays(ledger)
    for run in runs.list_runs(ledger):
        _complete_scans(ledger, run, clock, observer)
        known = known_gen_ids(run)
        for partition in runs.partitions_of(ledger, run.id):
            noted = _noting(ledger, partition, clock, observer)
            if n := strays.get(partition.id):
                what = f"put {n} samples back that were running without a worker"
                noted(Recovered(partition=partition.name, what=what))
            check_files(ledger, partition, known, noted)
            remove_leftovers(ledger, partition, Path(run.output_dir))


def _noting(ledger: Ledger, partition: PartitionView, clock: Clock, observer: Observer) -> Observer:
    """Return an observer that also makes each repair an entry of the run's activity."""

    def observe(event: Event) -> None:
        observer(event)
        if isinstance(event, Recovered):
            deed = Deed(
                who="system",
                event="files repaired",
                detail=event.what,
                run_id=partition.run_id,
                partition_id=partition.id,
            )
            add(ledger, deed, clock.now())

    return observe


def _complete_scans(ledger: Ledger, run: RunView, clock: Clock, observer: Observer) -> None:
    """Read prompts to their end where an earlier service died while it read them."""
    try:
        complete_scans(ledger, run, from_json(run.spec_json), clock, logger.info)
    except InputError as error:
        observer(ServiceTrouble(reason=f"run {run.name}: {error}"))


def known_gen_ids(run: RunView) -> frozenset[str]:
    """Return under which settings answers of this run may have been made."""
    manifest = read_manifest(Path(run.output_dir) / MANIFEST_NAME) or {}
    listed = manifest.get("gen_ids")
    return frozenset({run.gen_id, *(listed if isinstance(listed, dict) else ())})
