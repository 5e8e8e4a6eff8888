"""The conditions of one partition, from what was seen of it and a `now`.

Owns *partition stalled*, *slow*, *draining* and *budget reached*: when each begins, when it ends,
its sentence; how its answers ended is `conditions_of_outcomes.py`'s. Pure. Invariant: what began
ends with a margin, so that nothing flaps at the edge.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.core.conditions import Condition, ConditionKind, Key, by_key
from app.core.conditions_of_outcomes import Outcomes, outcome_conditions
from app.core.format import plural, span_of, speed, tokens
from app.core.silence import Silence, stands_still
from app.core.thresholds import RunThresholds

# what began below a speed ends at so many times it
_SPEED_MARGIN_RATIO = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideBest:
    """The speed now beside the best sustained one of the last hour without a control change.

    `below_since`: since when, without a break, it has been under the set share of it.
    """

    tokens_per_s: float
    best_tokens_per_s: float
    below_since: datetime | None = None

    @property
    def ratio(self) -> float:
        return self.tokens_per_s / self.best_tokens_per_s if self.best_tokens_per_s > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """What was known of a partition at one moment.

    `is_watched`: it has work left, in a run that lives. `is_working`: it may take samples now.
    `silence` is None while nothing is in flight or something of the whole run explains it,
    `beside_best` is None while it says nothing, `draining_since` while it does not drain. `n_left`:
    samples that a budget which is reached leaves undone, 0 while none is.
    """

    name: str
    is_watched: bool = True
    is_working: bool = True
    n_in_flight: int = 0
    silence: Silence | None = None
    stall_after_s: float = 600.0
    outcomes: Outcomes = field(default_factory=Outcomes)
    beside_best: BesideBest | None = None
    draining_since: datetime | None = None
    n_left: int = 0
    used_tokens: int = 0
    has_own_budget: bool = True


def partition_conditions(
    facts: PartitionFacts,
    limits: RunThresholds,
    now: datetime,
    before: Iterable[Condition] = (),
) -> tuple[Condition, ...]:
    """Return the conditions that hold, the gravest first; `before` are those of the last look."""
    last = by_key(before)
    found: list[Condition | None] = []
    if facts.is_watched:
        seen = replace(facts.outcomes, n_in_flight=facts.n_in_flight, is_working=facts.is_working)
        found.append(_stalled(facts, now))
        found += outcome_conditions(facts.name, seen, limits, now, last)
        found += [_slow(facts, limits, now, last), _draining(facts)]
    found.append(_budget_reached(facts, now, last))
    return tuple(one for one in found if one is not None)


def _stalled(facts: PartitionFacts, now: datetime) -> Condition | None:
    silence = facts.silence
    if silence is None or not stands_still(silence, facts.stall_after_s, now):
        return None
    return Condition(
        kind=ConditionKind.PARTITION_STALLED,
        since=silence.since,
        sentence=f"{facts.name} is stalled: no token for"
        f" {plural(facts.n_in_flight, 'request')} of it for {span_of(silence.since, now)}, while"
        " others of the run get theirs. Restart requests saves what they have and sends them anew.",
        partition=facts.name,
    )


def _slow(
    facts: PartitionFacts, limits: RunThresholds, now: datetime, last: Mapping[Key, Condition]
) -> Condition | None:
    kind, speeds = ConditionKind.SLOW, facts.beside_best
    if speeds is None or not facts.is_working:
        return None
    before = last.get((kind, facts.name))
    since = speeds.below_since if before is None else before.since
    if before is not None and speeds.ratio >= limits.slow_ratio * _SPEED_MARGIN_RATIO:
        return None
    if since is None or (before is None and (now - since).total_seconds() < limits.slow_after_s):
        return None
    at_present, at_best = speed(speeds.tokens_per_s), speed(speeds.best_tokens_per_s)
    return Condition(
        kind=kind,
        since=since,
        sentence=f"{facts.name} has been slow for {span_of(since, now)}: {at_present} now,"
        f" {at_best} at its best of the last hour. Look at the server's queue and"
        " retractions, and at who else uses it; less concurrency may be faster.",
        partition=facts.name,
        ratio=1.0 - speeds.ratio,
    )


def _draining(facts: PartitionFacts) -> Condition | None:
    if facts.draining_since is None:
        return None
    return Condition(
        kind=ConditionKind.DRAINING,
        since=facts.draining_since,
        sentence=f"{facts.name} drains: {plural(facts.n_in_flight, 'request')} to finish, then it"
        " is paused. Resume takes new samples again.",
        partition=facts.name,
    )


def _reached(facts: PartitionFacts) -> str:
    left = f"{plural(facts.n_left, 'sample')} {'is' if facts.n_left == 1 else 'are'} left"
    if facts.has_own_budget:
        used = (
            f"The token budget of {facts.name} is reached with {tokens(facts.used_tokens)} tokens"
        )
        return f"{used}; {left}. A higher budget goes on with them."
    return f"The run's token budget is reached; in {facts.name} {left}. Raise the run's."


def _budget_reached(
    facts: PartitionFacts, now: datetime, last: Mapping[Key, Condition]
) -> Condition | None:
    kind = ConditionKind.BUDGET_REACHED
    if not facts.n_left:
        return None
    before = last.get((kind, facts.name))
    return Condition(
        kind=kind,
        since=before.since if before else now,
        sentence=_reached(facts),
        partition=facts.name,
    )
