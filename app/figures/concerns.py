"""What a person should look at: the sentences behind "needs you".

Owns which figures need somebody, and their order, the gravest first. Pure. Invariant: every
sentence is one line without control characters, whatever a server said.
"""

from app.core.conditions import CALM_KINDS, Condition, ConditionKind
from app.core.format import one_line, plural
from app.core.states import PartitionState, RunState
from app.figures.remarks import troubles
from app.figures.shapes import PartitionFigures, RunFigures

_MANY_CUT = ConditionKind.MANY_TRUNCATED
_STANDSTILL = (ConditionKind.NOT_SERVED, ConditionKind.ALL_PAUSED)


def standstill(figures: RunFigures) -> Condition | None:
    """Return why the run cannot go on before somebody does something, None if it can."""
    return next((one for one in figures.conditions if one.kind in _STANDSTILL), None)


def pressing(figures: RunFigures) -> list[Condition]:
    """Return the conditions that somebody should look at, the gravest first.

    What was asked for is none of them, nor what a partition was paused for: its reason says it.
    """
    reasons = {
        each.name: each.reason for each in figures.partitions if each.state is PartitionState.PAUSED
    }
    return [
        one
        for one in figures.conditions
        if one.kind not in CALM_KINDS
        and not reasons.get(one.partition, "").startswith(f"{one.kind}: ")
    ]


def concerns(figures: RunFigures) -> list[str]:
    """Return sentences about what a person should look at, the gravest first."""
    kinds = {one.kind for one in figures.conditions}
    is_said = ConditionKind.SERVER_CHANGED in kinds  # with the same words, and what to do
    found = [figures.reason] if figures.reason and not is_said else []
    found += [one.sentence for one in pressing(figures)]
    found += [
        f"{each.name} is paused: {each.reason}"
        for each in figures.partitions
        if each.state is PartitionState.PAUSED and each.reason not in ("", "drained")
    ]
    starving = [each.name for each in figures.partitions if _starves(figures, each)]
    if starving:
        found.append(
            f"{', '.join(starving)} must wait: the concurrency of the class is used up by others."
        )
    failed = [each for each in figures.partitions if each.counts.failed]
    if failed:
        n = sum(each.counts.failed for each in failed)
        names = ", ".join(each.name for each in failed)
        found.append(f"{plural(n, 'sample')} failed in {names}.")
    cut = {each.partition for each in figures.conditions if each.kind is _MANY_CUT}
    for each in figures.partitions:
        found += troubles(each.name, each.counts, is_cut_said=each.name in cut)
    return [one_line(one) for one in found]


def _starves(run: RunFigures, partition: PartitionFigures) -> bool:
    """Return whether a partition with work gets none because others of its class were set by hand.

    Where more partitions than requests share a class, waiting is their turn, not a concern.
    """
    if run.state is not RunState.RUNNING or partition.concurrency_requests != 0:
        return False
    peers = [each for each in run.partitions if each.class_name == partition.class_name]
    is_working = partition.state is PartitionState.ACTIVE and not partition.is_over
    return is_working and any(each.own_concurrency for each in peers)
