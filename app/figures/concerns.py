"""What a person should look at: the sentences behind "needs you".

Owns which figures need somebody, and their order, the gravest first. Pure. Invariant: every
sentence is one line without control characters, whatever a server said.
"""

from app.core.conditions import Condition, ConditionKind
from app.core.format import one_line, plural
from app.core.states import PartitionState
from app.figures.remarks import troubles
from app.figures.shapes import RunFigures

_STANDSTILL = (ConditionKind.NOT_SERVED, ConditionKind.ALL_PAUSED)


def standstill(figures: RunFigures) -> Condition | None:
    """Return why the run cannot go on before somebody does something, None if it can."""
    return next((one for one in figures.conditions if one.kind in _STANDSTILL), None)


def concerns(figures: RunFigures) -> list[str]:
    """Return sentences about what a person should look at, the gravest first."""
    found = [figures.reason] if figures.reason else []
    found += [condition.sentence for condition in figures.conditions]
    found += [
        f"{each.name} is paused: {each.reason}"
        for each in figures.partitions
        if each.state is PartitionState.PAUSED and each.reason not in ("", "drained")
    ]
    failed = [each for each in figures.partitions if each.counts.failed]
    if failed:
        n = sum(each.counts.failed for each in failed)
        names = ", ".join(each.name for each in failed)
        found.append(f"{plural(n, 'sample')} failed in {names}.")
    for each in figures.partitions:
        found += troubles(each.name, each.counts)
    return [one_line(one) for one in found]
