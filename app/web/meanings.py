"""What a budget, a goal or a deadline would mean, said while it is typed.

Owns the arithmetic and its words. Pure: figures of the last look, what is typed, nothing else. Mean
lengths are those of the answers that were kept; what is said of the end is "about", of time "≈".
Invariant: where too few answers have ended, or nothing is measured, that is said, and no number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core import format as words
from app.core.budget import MIN_FINISHED
from app.core.deadlines import DeadlineError, parse_deadline
from app.core.estimate import Estimate, samples_left, wanted_samples
from app.core.types import Counts
from app.errors import InputError
from app.figures import PartitionFigures, RunFigures
from app.web.typed_limits import typed_goal, typed_tokens_budget

Figures = PartitionFigures | RunFigures
_TOO_FEW = "too few answers have ended to say what it would mean"
_LEAST_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What is still to be made: samples done and wanted, tokens that the rest is likely to take."""

    done: int
    wanted: int
    tokens: float


def would_mean(kind: str, typed: str | None, now: Figures, at: datetime) -> str:
    """Return what a limit would mean, None for "none"; a value that is no limit is told as that.

    InputError names field and value.
    """
    if kind == "budget":
        return _budget(typed_tokens_budget(typed), now)
    if kind == "goal" and isinstance(now, PartitionFigures):
        return _goal(typed_goal(typed), now)
    return _deadline(typed, now, at)


def _budget(budget: int | None, now: Figures) -> str:
    used = now.tokens.used
    if budget is not None and used >= budget:
        return f"already {words.tokens(used)} made; nothing new would begin"
    need = _need(now)
    if need is None:
        return _TOO_FEW
    room = need.tokens if budget is None else min(need.tokens, float(budget - used))
    before = now.token_budget_tokens
    room_now = need.tokens if before is None else min(need.tokens, float(max(0, before - used)))
    end = _end(need, room)
    return "; ".join(each for each in (end, _time(room - room_now, now)) if each)


def _end(need: Need, room: float) -> str:
    if room >= need.tokens:
        return f"room for all {words.plural(need.wanted, 'sample')}"
    done = need.done + (need.wanted - need.done) * room / need.tokens
    return f"ends at about {min(99, int(100 * done / need.wanted))} % of the samples"


def _goal(goal: int | None, now: PartitionFigures) -> str:
    kept, usable = now.counts.kept, wanted_samples(now.counts)
    if goal is not None and kept >= goal:
        return f"already {words.plural(kept, 'answer')}; nothing new would begin"
    if goal is not None and goal > usable:
        return f"only {words.plural(usable, 'sample')} can be made; all of them would be"
    more = samples_left(now.counts, goal)
    each = _each_tokens(now)
    if each is None:
        return f"{words.plural(more, 'answer')} to go; {_TOO_FEW}"
    change = (more - samples_left(now.counts, now.goal_samples)) * each
    said = (f"{words.plural(more, 'answer')} to go", _time(change, now))
    return "; ".join(part for part in said if part)


def _time(more_tokens: float, now: Figures) -> str:
    """Return how much longer or shorter it takes at the speed of now."""
    speed = now.speed_tokens_per_s
    if not speed or abs(more_tokens) / speed < _LEAST_S:
        return ""
    verb = "adds" if more_tokens > 0 else "saves"
    return f"{verb} ≈ {words.span(abs(more_tokens) / speed)}"


def _deadline(typed: str | None, now: Figures, at: datetime) -> str:
    try:
        deadline = None if typed is None else parse_deadline(typed, at)
    except DeadlineError as error:
        raise InputError(f"deadline {error}") from error
    if deadline is None:
        return "goes on until its work is done"
    ahead_s = (deadline - at).total_seconds()
    verb = "stops" if isinstance(now, RunFigures) else "pauses"
    said = f"{verb} in {words.span(ahead_s)}"
    left = now.time_left
    if not isinstance(left, Estimate) or left.mid_s <= 0:
        return said
    if left.mid_s <= ahead_s:
        return f"{said}; its work is likely done before"
    percent = now.percent + (100 - now.percent) * ahead_s / left.mid_s
    return f"{said}, at about {min(99, int(percent))} %"


def _need(now: Figures) -> Need | None:
    """Return what is left of a partition, or of all of a run; None where lengths are not known."""
    parts: Sequence[PartitionFigures] = now.partitions if isinstance(now, RunFigures) else (now,)
    tokens, done, wanted = 0.0, 0, 0
    for part in parts:
        left = samples_left(part.counts, part.goal_samples)
        each = _each_tokens(part)
        if each is None and left:
            return None
        tokens += max(0.0, left * (each or 0.0) - part.tokens.held)
        of_it = wanted_samples(part.counts, part.goal_samples)
        wanted, done = wanted + of_it, done + max(0, of_it - left)
    return None if not tokens else Need(done=done, wanted=wanted, tokens=tokens)


def _each_tokens(part: PartitionFigures) -> float | None:
    """Return the mean length of the answers that were kept; None of too few."""
    counts: Counts = part.counts
    if counts.kept < MIN_FINISHED or not part.tokens.kept:
        return None
    return part.tokens.kept / counts.kept


def tokens_to_finish(part: PartitionFigures) -> float | None:
    """Return about how many tokens the samples left over by a budget take; None: not known."""
    need = _need(part)
    return None if need is None else need.tokens
