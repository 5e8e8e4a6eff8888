"""What the conditions of partitions are derived from: outcomes, speed, orders, as facts.

Owns the reading of what each partition has become since the last look, and what is remembered of
it: in memory, for the time of this service. What the conditions are is `core/`'s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from app.core.budget import remaining_goal
from app.core.conditions import Condition, ConditionKind
from app.core.conditions_of_partition import BesideBest, PartitionFacts, partition_conditions
from app.core.silence import Silence
from app.core.states import PartitionState, RunState
from app.core.types import PartitionId
from app.core.views import PartitionView
from app.figures.best_speed import BestSpeed
from app.figures.looking import Look
from app.figures.recent import Charged, OutcomeTrack, Recent, longest_window
from app.ledger.db import Ledger
from app.ledger.progress import charged_attempts

_LIVE = (RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)
# these say why a partition is slow, and more
_EXPLAINS_SLOWNESS = frozenset(
    {
        ConditionKind.NOT_SERVED,
        ConditionKind.SERVER_CHANGED,
        ConditionKind.LEDGER_FULL,
        ConditionKind.LEDGER_LOCKED,
        ConditionKind.WAITING_FOR_SERVER,
        ConditionKind.STALLED,
        ConditionKind.STORAGE_SLOW,
    }
)


def conditions_of_partitions(
    ledger: Ledger,
    look: Look,
    memory: Recent | None,
    of_run: Sequence[Condition],
    before: Sequence[Condition],
) -> tuple[Condition, ...]:
    """Return the conditions of all partitions; without a memory what only takes one look."""
    limits = look.spec.thresholds
    is_explained = any(one.kind in _EXPLAINS_SLOWNESS for one in of_run)
    if memory is not None:
        _learn(ledger, look, memory, is_explained=is_explained)
    found: list[Condition] = []
    for partition in look.partitions:
        facts = _facts(look, partition, memory)
        if memory is not None and not is_explained:
            facts = replace(facts, silence=_silence(look, partition, memory))
        found += partition_conditions(facts, limits, look.now, before)
    return tuple(found)


def _learn(ledger: Ledger, look: Look, memory: Recent, *, is_explained: bool) -> None:
    limits = look.spec.thresholds
    charged = _charged(ledger, look, memory)
    keep_n = longest_window(limits)
    control = tuple(
        (each.id, each.state, each.own_concurrency, look.shares.get(each.id))
        for each in look.partitions
    )
    for each in look.partitions:
        if _flying(look, each):
            memory.flying_since_s.setdefault(each.id, look.at_s)
        else:
            memory.flying_since_s.pop(each.id, None)
        track = memory.outcomes.setdefault(each.id, OutcomeTrack())
        track.add(look.at_s, each.counts, charged.get(each.id, Charged()), keep_n)
        best = memory.best_speeds.setdefault(each.id, BestSpeed())
        if _sends_all_it_may(look, each) and not is_explained:
            best.add(look.at_s, each.tokens.received, control, limits)
        else:
            best.forget()


def _charged(ledger: Ledger, look: Look, memory: Recent) -> Mapping[PartitionId, Charged]:
    last = memory.attempt_id
    memory.attempt_id, found = charged_attempts(ledger, look.run.id, last)
    return {each.partition_id: Charged(n=each.n, n_mismatched=each.n_mismatched) for each in found}


def _sends_all_it_may(look: Look, partition: PartitionView) -> bool:
    """Return whether nothing but the server decides how fast it goes: it has more to send."""
    if not _is_working(look, partition) or partition.is_over:
        return False
    budgets = [
        (partition.token_budget, partition.tokens.used + partition.reserved_tokens),
        (look.run.token_budget, sum(p.tokens.used + p.reserved_tokens for p in look.partitions)),
    ]
    if any(b is not None and b - taken < partition.max_new_tokens for b, taken in budgets):
        return False
    flying = _flying(look, partition)
    may = partition.own_concurrency or look.shares.get(partition.id) or 0
    is_held_back = (
        partition.intake == "scanned"
        or partition.n_waiting > 0
        or any(b is not None for b, _ in budgets)
    )
    if is_held_back and flying * 2 < may:
        # it waits for its prompts to be tokenized, for earlier turns, or nears the end of a budget
        return False
    return may > 0 and remaining_goal(partition.goal_samples, partition.counts) > 0


def _is_working(look: Look, partition: PartitionView) -> bool:
    return look.run.state is RunState.RUNNING and partition.state is PartitionState.ACTIVE


def _facts(look: Look, partition: PartitionView, memory: Recent | None) -> PartitionFacts:
    facts = PartitionFacts(
        name=partition.name,
        is_watched=look.run.state in _LIVE and look.is_served and not partition.is_over,
        is_working=_is_working(look, partition),
        n_in_flight=_flying(look, partition),
        stall_after_s=look.spec.stall_after_s,
        draining_since=partition.state_since
        if partition.state is PartitionState.DRAINING
        else None,
        n_left=_n_left(partition),
        has_own_budget=partition.token_budget is not None,
        used_tokens=partition.tokens.used,
    )
    if memory is None:
        return facts
    since = max(partition.state_since, look.run.state_since)
    active_at_s = look.at_s - (look.now - since).total_seconds()
    outcomes = memory.outcomes[partition.id].seen(look.spec.thresholds, active_at_s)
    return replace(
        facts, outcomes=outcomes, beside_best=_beside_best(look, memory.best_speeds[partition.id])
    )


def _flying(look: Look, partition: PartitionView) -> int:
    return sum(each.in_flight for each in look.workers if each.partition_id == partition.id)


def _silence(look: Look, partition: PartitionView, memory: Recent) -> Silence | None:
    """Return since when nothing has come for its requests, None if nothing is in flight."""
    flying_since_s = memory.flying_since_s.get(partition.id)
    if flying_since_s is None:
        return None
    mine = [each for each in look.workers if each.partition_id == partition.id]
    if any(each.waiting_since for each in mine):
        return None
    since = look.now - timedelta(seconds=look.at_s - flying_since_s)
    others = [each.last_token_at for each in look.workers if each.partition_id != partition.id]
    waiting = [load.waiting_requests for load in look.servers]
    waits = [load.first_token_p99_s for load in look.servers if load.first_token_p99_s is not None]
    return Silence(
        since=max([since, *(each.last_token_at for each in mine if each.last_token_at)]),
        others_at=max((at for at in others if at is not None), default=None),
        n_waiting=sum(n or 0 for n in waiting),
        first_token_p99_s=max(waits, default=None),
    )


def _n_left(partition: PartitionView) -> int:
    if not partition.budget_reached or partition.goal_reached:
        return 0
    return remaining_goal(partition.goal_samples, partition.counts)


def _beside_best(look: Look, track: BestSpeed) -> BesideBest | None:
    now, best, since_s = track.now_tokens_per_s, track.best_tokens_per_s, track.below_since_s
    if now is None or best is None:
        return None
    below = None if since_s is None else look.now - timedelta(seconds=look.at_s - since_s)
    return BesideBest(tokens_per_s=now, best_tokens_per_s=best, below_since=below)
