"""Whether enough is known of one partition to say when it ends.

Owns the reasons why not. Pure; what is then said is `ends.py`'s.
"""

from app.core.estimate import Unknown, samples_left, wanted_samples
from app.core.showing import too_few
from app.core.states import PartitionState
from app.figures.forecasting import Outlook


def is_open(view: Outlook) -> bool:
    """Return whether samples run or may be claimed."""
    counts, goal = view.partition.counts, view.partition.goal_samples
    may_claim = view.partition.state is PartitionState.ACTIVE and samples_left(counts, goal) > 0
    return counts.running > 0 or may_claim


def no_lengths(view: Outlook) -> str | None:
    """Return why the work itself is not known yet."""
    if view.partition.intake == "scanning":
        return "reading the prompts"
    return "not measured, no service runs" if view.known is None else None


def few(view: Outlook) -> Unknown | None:
    """Return why its own answers do not say enough yet, None where they do."""
    if isinstance(view.left, Unknown):
        return view.left
    counts = view.partition.counts
    wanted = wanted_samples(counts, view.partition.goal_samples)
    return too_few(counts.kept + counts.failed, wanted)
