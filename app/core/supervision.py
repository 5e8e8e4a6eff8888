"""What should be, given what is: which partition has a worker, with what order and what share.

Pure; the supervisor gathers the facts, calls it, and acts. Invariant: at most one worker per
partition is wanted, and shares of a class never exceed its concurrency (own ones aside).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.core.budget import remaining_goal
from app.core.conditions import SERVER_CHANGED
from app.core.shares import Need, split_class
from app.core.spec import Order, RunSpec
from app.core.states import PartitionState, RunState
from app.core.thresholds import RunThresholds
from app.core.types import PartitionId
from app.core.views import PartitionView

MAX_IDLE_DEATHS = 5
# How the reason of a run begins that nobody stopped: its server or settings serve nobody.
HALTED = "halted: "
_FIRST_BACKOFF_S = 0.5
_MAX_BACKOFF_S = 30.0


class Want(StrEnum):
    """The order for a partition's worker; `NONE`: there is to be no worker."""

    WORK = "work"
    DRAIN = "drain"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    want: Want
    share: int = 0


def wanted_workers(
    run_state: RunState, spec: RunSpec, partitions: Sequence[PartitionView]
) -> dict[PartitionId, Wanted]:
    """Return what is wanted of each partition of a run."""
    has_turn = _turns(spec, partitions)
    wants = {each.id: _want(run_state, each, has_turn) for each in partitions}
    needs = {each.id: _need(each, wants[each.id]) for each in partitions}
    shares = _shares(spec, [each for each in partitions if wants[each.id] is not Want.STOP], needs)
    return {
        each.id: Wanted(want=wants[each.id], share=shares.get(each.name, 0)) for each in partitions
    }


def _want(run_state: RunState, partition: PartitionView, has_turn: set[PartitionId]) -> Want:
    if run_state is RunState.STOPPING and partition.state is PartitionState.DRAINING:
        return Want.DRAIN  # to be stopped once what runs is finished
    if run_state is not RunState.RUNNING or not _has_work(partition):
        return Want.STOP
    if partition.state is PartitionState.DRAINING:
        return Want.DRAIN
    if partition.state is PartitionState.PAUSED or partition.id not in has_turn:
        return Want.STOP
    return Want.WORK


def _has_work(partition: PartitionView) -> bool:
    return partition.intake != "scanning" and not partition.is_over


def _turns(spec: RunSpec, partitions: Sequence[PartitionView]) -> set[PartitionId]:
    """Return whose turn it is: everybody's, or the first of each class that is not done."""
    active = [each for each in partitions if _has_work(each)]
    if spec.order is not Order.SEQUENCE:
        return {each.id for each in active}
    firsts: dict[str, PartitionId] = {}
    for each in active:
        if each.state is not PartitionState.PAUSED:
            firsts.setdefault(each.class_name, each.id)
    return set(firsts.values())


def _need(partition: PartitionView, want: Want) -> Need:
    """Return what a partition can use: what is in flight, and what it may still claim."""
    counts, n_waiting = partition.counts, partition.n_waiting
    more = remaining_goal(partition.goal_samples, counts) if want is Want.WORK else 0
    if n_waiting:  # a conversation has one turn at a time: the next one takes the place of this one
        more = min(more, counts.pending - n_waiting + min(n_waiting, counts.running + 1))
    return Need(n_open=counts.running + more, own=partition.own_concurrency)


def _shares(
    spec: RunSpec, partitions: Sequence[PartitionView], needs: Mapping[PartitionId, Need]
) -> dict[str, int]:
    shares: dict[str, int] = {}
    by_class: dict[str, dict[str, Need]] = {}
    for each in partitions:
        by_class.setdefault(each.class_name, {})[each.name] = needs[each.id]
    for name, in_class in by_class.items():
        shares |= split_class(spec.classes[name].concurrency, in_class)
    return shares


def halting(reason: str, thresholds: RunThresholds) -> tuple[str, str]:
    """Return the event and the reason for a run that nobody can be served of.

    It is stopped; one whose server is another now is paused, and resumed when that is mended.
    """
    if reason.startswith(SERVER_CHANGED) and thresholds.auto_pause:
        return "pause", reason
    return "stop", HALTED + reason


def backoff_after(idle_deaths: int) -> float:
    """Return how long to wait before the next worker, after so many deaths without progress.

    >>> [backoff_after(n) for n in (0, 1, 2, 10)]
    [0.0, 0.5, 1.0, 30.0]
    """
    if idle_deaths == 0:
        return 0.0
    return float(min(_MAX_BACKOFF_S, _FIRST_BACKOFF_S * 2 ** (min(idle_deaths, 32) - 1)))


def is_run_over(partitions: Sequence[PartitionView], living: Mapping[PartitionId, object]) -> bool:
    """Return whether nothing is left to do: all partitions are over, sealed, without a worker."""
    return all(
        each.is_over and each.sealed_at is not None and each.id not in living for each in partitions
    )
