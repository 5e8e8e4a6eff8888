"""When partitions and the run will have ended, from what is left and how fast it goes.

Owns how partitions add up: those of a class share its concurrency, so a class ends when all its
tokens are made at its joint speed, and the run ends with the class that ends last. Decides
nothing; reads nothing. A partition that does not work now is no part of the run's forecast.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from app.core.estimate import (
    Estimate,
    Left,
    Remaining,
    Speed,
    Unknown,
    estimate,
    remaining_tokens,
)
from app.core.states import PartitionState
from app.core.views import PartitionView
from app.figures.speedometer import Known

_NOTHING = Estimate(low_s=0.0, mid_s=0.0, high_s=0.0)
# a partition whose lengths are not known yet is taken to be like its class, give or take half
_ASSUMED_DEVIATION_RATIO = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """One partition, what is left of it and how fast it goes; `left` is None if it is over."""

    partition: PartitionView
    left: Remaining | Unknown
    speed: Speed
    known: Known | None

    @property
    def goes_on(self) -> bool:
        return not self.partition.is_over and self.partition.state is not PartitionState.PAUSED


def outlook(partition: PartitionView, known: Known | None, speed: Speed) -> Outlook:
    """Return what is left of a partition."""
    left: Remaining | Unknown
    if partition.is_over:
        left = Remaining(tokens=0.0)
    elif partition.intake == "scanning":
        left = Unknown(why="reading the prompts")
    elif known is None:
        left = Unknown(why="not measured, no service runs")
    else:
        left = remaining_tokens(_left(partition, known), known.lengths)
    return Outlook(partition=partition, left=left, speed=speed, known=known)


def _left(partition: PartitionView, known: Known) -> Left:
    return Left(
        counts=partition.counts,
        started_tokens=known.started_tokens,
        goal_samples=partition.goal_samples,
        budget_tokens=partition.token_budget,
        used_tokens=partition.tokens.used,
    )


def partition_end(view: Outlook, silence: str | None) -> Estimate | Unknown:
    """Return the time left of one partition; `silence` says why nothing can come now."""
    if view.partition.is_over:
        return _NOTHING
    if view.partition.state is PartitionState.PAUSED:
        return Unknown(why="paused")
    if silence:
        return Unknown(why=silence)
    return estimate(view.left, view.speed)


def run_end(
    views: Sequence[Outlook], silence: str | None, budget_left_tokens: int | None
) -> tuple[Estimate | Unknown, str | None]:
    """Return the time left of the run, and the class that ends last."""
    going = [view for view in views if view.goes_on]
    if not going:
        paused = any(not view.partition.is_over for view in views)
        return (Unknown(why="all that is left is paused") if paused else _NOTHING), None
    if silence:
        return Unknown(why=silence), None
    filled = _filled(going)
    if budget_left_tokens is not None:
        whole = _sum_left(filled)
        if isinstance(whole, Remaining) and whole.tokens > budget_left_tokens:
            room = Remaining(tokens=float(max(0, budget_left_tokens)))
            return estimate(room, _sum_speed(filled)), None
    classes = list(dict.fromkeys(view.partition.class_name for view in filled))
    latest: tuple[Estimate, str] | None = None
    for name in classes:
        mine = [view for view in filled if view.partition.class_name == name]
        end = estimate(_sum_left(mine), _sum_speed(mine))
        if isinstance(end, Unknown):
            return end, name
        if latest is None or end.mid_s > latest[0].mid_s:
            latest = (end, name)
    return latest or (_NOTHING, None)


def _filled(views: Sequence[Outlook]) -> list[Outlook]:
    """Give partitions that have no lengths yet those of their class, as far as any are known."""
    filled = []
    for view in views:
        means = [
            other.known.lengths.expected()
            for other in views
            if other.partition.class_name == view.partition.class_name
            and other.known is not None
            and isinstance(other.left, Remaining)
        ]
        if isinstance(view.left, Unknown) and means and view.partition.intake != "scanning":
            tokens = _open_samples(view.partition) * sum(means) / len(means)
            budget = view.partition.token_budget
            if budget is not None:
                tokens = min(tokens, max(0.0, budget - view.partition.tokens.used))
            assumed = Remaining(tokens=tokens, deviation_tokens=tokens * _ASSUMED_DEVIATION_RATIO)
            filled.append(replace(view, left=assumed))
        else:
            filled.append(view)
    return filled


def _open_samples(partition: PartitionView) -> int:
    counts = partition.counts
    n_open = counts.pending + counts.running
    goal = partition.goal_samples
    return n_open if goal is None else min(n_open, max(0, goal - counts.kept))


def _sum_left(views: Sequence[Outlook]) -> Remaining | Unknown:
    tokens, variance = 0.0, 0.0
    for view in views:
        if isinstance(view.left, Unknown):
            return view.left
        tokens += view.left.tokens
        variance += view.left.deviation_tokens**2
    return Remaining(tokens=tokens, deviation_tokens=sqrt(variance))


def _sum_speed(views: Sequence[Outlook]) -> Speed:
    return Speed(
        tokens_per_s=sum(view.speed.tokens_per_s for view in views),
        observed_s=max((view.speed.observed_s for view in views), default=0.0),
        deviation_tokens_per_s=sqrt(sum(view.speed.deviation_tokens_per_s**2 for view in views)),
    )


def progress_percent(partition: PartitionView) -> int:
    """Return 0-100, rounded down; 100 only when nothing is left that may be done (prg-02).

    The end is near by whichever of goal, input and budget is nearer.
    """
    if partition.intake == "scanning":
        return 0
    if partition.is_over:
        return 100 if partition.counts.total else 0
    wanted = wanted_samples(partition)
    counts = partition.counts
    done = counts.kept if partition.goal_samples is not None else counts.total - _open(partition)
    shares = [100 * done // wanted if wanted else 0]
    if partition.token_budget:
        shares.append(100 * partition.tokens.used // partition.token_budget)
    return max(0, min(99, max(shares)))


def _open(partition: PartitionView) -> int:
    return partition.counts.pending + partition.counts.running


def wanted_samples(partition: PartitionView) -> int:
    """Return how many samples the end of the partition means."""
    total = partition.counts.total
    return total if partition.goal_samples is None else min(partition.goal_samples, total)
