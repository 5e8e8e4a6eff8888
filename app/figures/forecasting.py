"""When partitions and the run will have ended, from what is left and how fast it goes.

Owns how partitions add up: those of a class share its concurrency, so a class ends between the
moment at which its joint speed has made all its tokens and the end of its slowest partition; the
run ends with the last. Pure. A partition that does not work now is no part of the run's forecast.
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
    percent,
    remaining_tokens,
    samples_left,
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
    ends: list[tuple[Estimate, str]] = []
    for mine in _sharing(filled):
        name = mine[0].partition.class_name
        end = joint_end(mine)
        if isinstance(end, Unknown):
            return end, name
        ends.append((end, name))
    whole_run = Estimate(
        low_s=max(end.low_s for end, _ in ends),
        mid_s=max(end.mid_s for end, _ in ends),
        high_s=max(end.high_s for end, _ in ends),
    )
    return whole_run, max(ends, key=lambda each: each[0].mid_s)[1]


def _sharing(views: Sequence[Outlook]) -> list[list[Outlook]]:
    """Return the partitions that share a concurrency together, one with its own alone."""
    groups: dict[tuple[str, str], list[Outlook]] = {}
    for view in views:
        partition = view.partition
        own = "" if partition.own_concurrency is None else partition.name
        groups.setdefault((partition.class_name, own), []).append(view)
    return list(groups.values())


def joint_end(views: Sequence[Outlook]) -> Estimate | Unknown:
    """Return when partitions that share a concurrency will all have ended.

    At the soonest the share of one that ends goes to the others in full, at the latest the slowest
    goes on as it does now. How much of it is of use is not known: the middle lies between.
    """
    joint = estimate(_sum_left(views), _sum_speed(views))
    if isinstance(joint, Unknown):
        return joint
    alone = [estimate(view.left, view.speed) for view in views]
    known = [end for end in alone if isinstance(end, Estimate)]
    slowest_s = max((end.mid_s for end in known), default=0.0)
    return Estimate(
        low_s=joint.low_s,
        mid_s=max(joint.mid_s, (joint.mid_s + slowest_s) / 2),
        high_s=max([joint.high_s, *(end.high_s for end in known)]),
    )


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
            n_left = samples_left(view.partition.counts, view.partition.goal_samples)
            tokens = n_left * sum(means) / len(means)
            budget = view.partition.token_budget
            if budget is not None:
                tokens = min(tokens, max(0.0, budget - view.partition.tokens.used))
            assumed = Remaining(tokens=tokens, deviation_tokens=tokens * _ASSUMED_DEVIATION_RATIO)
            filled.append(replace(view, left=assumed))
        else:
            filled.append(view)
    return filled


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
        return 100
    shares = [percent(partition.counts, partition.goal_samples)]
    if partition.token_budget:
        shares.append(100 * partition.tokens.used // partition.token_budget)
    return max(0, min(99, max(shares)))
