"""Which limits of a run follow a changed spec, and which stay as people set them live.

Owns the rule: a limit is set anew only where the spec says something else than the stored spec
does; otherwise the live value wins. A deadline that has passed over a run at rest is set anew: the
same words mean the next such moment. Every change is an activity entry, like one made by hand.
"""

from app.core.spec import PartitionSpec, RunSpec, from_json
from app.core.views import PartitionView, RunView
from app.ledger.db import Ledger
from app.ledger.deadlines import set_partition_deadline, set_run_deadline
from app.ledger.limits import set_concurrency, set_goal, set_partition_budget, set_run_budget
from app.ledger.orders import Change, Order
from app.ledger.settings_of_runs import set_class
from app.submission.partitions import moments_anew
from app.submission.request import Request


def apply_limits(
    request: Request,
    order: Order,
    run: RunView,
    new: RunSpec,
    partitions: list[PartitionView],
) -> list[Change]:
    """Set what the new spec changes; it has its partitions resolved, as the stored one has.

    InputError for a deadline that has passed; then nothing was changed.
    """
    ledger, old = request.ledger, from_json(run.spec_json)
    changes = _deadlines(request, order, run, new, partitions)
    if old.token_budget_tokens != new.token_budget_tokens:
        changes.append(set_run_budget(ledger, order, new.token_budget_tokens))
    for partition in partitions:
        was, wanted = old.partitions.get(partition.name), new.partitions.get(partition.name)
        if was is not None and wanted is not None:
            changes += _apply(ledger, order, partition, was, wanted)
    return changes


def _deadlines(
    request: Request, order: Order, run: RunView, new: RunSpec, partitions: list[PartitionView]
) -> list[Change]:
    """Set deadlines that are written otherwise, or that have passed over a run at rest."""
    ledger = request.ledger
    changes: list[Change] = []
    leaves_stopped = request.leaves_stopped(run)
    moments = moments_anew(run, partitions, new, order.now, leaves_stopped=leaves_stopped)
    for name, at in moments.items():
        if name is None:
            # whoever submits it sets the run going, once everything else is as it says
            changes += set_run_deadline(ledger, order, at, resume=False)
        else:
            changes += set_partition_deadline(ledger, order, name, at)
    return changes


def _apply(
    ledger: Ledger,
    order: Order,
    partition: PartitionView,
    was: PartitionSpec,
    wanted: PartitionSpec,
) -> list[Change]:
    changes: list[Change] = []
    name = partition.name
    if was.concurrency != wanted.concurrency:
        changes.append(set_concurrency(ledger, order, name, wanted.concurrency))
    if was.max_samples != wanted.max_samples:
        changes.append(set_goal(ledger, order, name, wanted.max_samples))
    if was.token_budget_tokens != wanted.token_budget_tokens:
        changes.append(set_partition_budget(ledger, order, name, wanted.token_budget_tokens))
    limit = wanted.max_new_tokens or partition.max_new_tokens
    if (was.class_name, was.max_new_tokens) != (wanted.class_name, wanted.max_new_tokens):
        set_class(ledger, partition.id, wanted.class_name, limit)
    return changes
