"""What a deadline does when it is reached; looked at in each step, before anybody is set to work.

Owns nothing: what is due is `core/deadlines.py`, each effect one guarded statement of the ledger.
So a deadline that passed while nobody served takes effect before the first claim.
"""

from collections.abc import Sequence
from datetime import datetime

from app.core.deadlines import due
from app.core.states import RunState
from app.core.views import PartitionView, RunView
from app.events import Observer, RunMoved
from app.ledger import runs
from app.ledger.db import Ledger
from app.ledger.deadlines import reach_partition, reach_run
from app.ledger.orders import Order


def reach_deadlines(
    ledger: Ledger,
    run: RunView,
    partitions: Sequence[PartitionView],
    now: datetime,
    observer: Observer,
) -> bool:
    """Stop what is due, as a person would; return whether something was."""
    found, order = due(run, partitions, now), Order(run_id=run.id, who="system", now=now)
    moved = [reach_partition(ledger, order, one, at) for one, at in found.partitions]
    if found.run is not None and reach_run(ledger, order, found.run):
        reason = runs.get_run(ledger, run.id).reason
        observer(RunMoved(run_id=run.id, state=RunState.STOPPING, reason=reason))
        moved.append(True)
    return any(moved)
