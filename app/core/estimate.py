"""How much is left, how long that takes, and when this cannot be said yet.

Owns progress in percent, the remaining tokens of a partition and the plain ETA: remaining tokens
over the recent speed. The window of the speed (since the last control change, this session only)
is its caller's. Invariant: an estimate is finite and 0 <= low <= mid <= high, else it is Unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

from app.core.lengths import Lengths
from app.core.types import Counts

MIN_ENDED = 5
MIN_OBSERVED_S = 10.0
# 80 % of a normal distribution lies within this many standard deviations: the 10-90 % range
_Z = 1.2816
# past this a figure is noise, and sums of it would overflow a date
_LONGEST_S = 10 * 365 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """No estimate, and why: words to show in its place."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Time left, with its 10-90 % range."""

    low_s: float
    mid_s: float
    high_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The part of a partition that is not done.

    `started_tokens` are the lengths so far of the answers that were begun and not finished,
    running or put back with held tokens. `used_tokens` is what counts against the budget.
    """

    counts: Counts
    started_tokens: Sequence[int] = ()
    goal_samples: int | None = None
    budget_tokens: int | None = None
    used_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """Output tokens still to be made, with the standard deviation of that sum."""

    tokens: float
    deviation_tokens: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Tokens a second over the last `observed_s`, and how much that varied."""

    tokens_per_s: float
    observed_s: float
    deviation_tokens_per_s: float = 0.0


def wanted_samples(counts: Counts, goal_samples: int | None = None) -> int:
    """Return how many samples the end means: rejected ones were never sent and are no work."""
    usable = counts.total - counts.rejected
    return usable if goal_samples is None else min(goal_samples, usable)


def samples_left(counts: Counts, goal_samples: int | None = None) -> int:
    """Return how many samples are still to be made."""
    is_open = counts.pending + counts.running
    if goal_samples is None:
        return is_open
    return min(is_open, max(0, goal_samples - counts.kept))


def percent(counts: Counts, goal_samples: int | None = None) -> int:
    """Return the share that is done, 0-100, rounded down: 100 only when nothing is left (prg-02).

    Failed samples are done, nothing more will happen to them by itself; towards a goal they do not
    count. Where there is nothing to do, all is done.
    """
    if samples_left(counts, goal_samples) == 0:
        return 100
    wanted = wanted_samples(counts, goal_samples)
    done = counts.kept if goal_samples is not None else counts.kept + counts.failed
    return 100 * done // wanted


def remaining_tokens(
    left: Left, lengths: Lengths, *, min_ended: int = MIN_ENDED
) -> Remaining | Unknown:
    """Return what the goal still asks for or the budget still allows, whichever is less."""
    n_left = samples_left(left.counts, left.goal_samples)
    if n_left == 0:
        return Remaining(tokens=0.0)
    if lengths.n_finished < min_ended:
        return Unknown(why=f"estimating: {lengths.n_finished} of {min_ended} answers have ended")
    # the longest first: if the goal needs fewer than were begun, those are nearest to their end
    started = sorted(left.started_tokens, reverse=True)[:n_left]
    n_fresh = n_left - len(started)
    tokens = n_fresh * lengths.expected()
    tokens += sum(lengths.expected(made) - made for made in started if made < lengths.cap_tokens)
    # each length scatters, and the mean of all fresh ones is itself known from n_finished only
    mean_error = n_fresh * lengths.deviation_tokens / sqrt(lengths.n_finished)
    scatter = lengths.deviation_tokens * sqrt(n_left)
    deviation = sqrt(mean_error**2 + scatter**2)
    if left.budget_tokens is not None:
        room = max(0, left.budget_tokens - left.used_tokens)
        if room < tokens:
            return Remaining(tokens=float(room))
    return Remaining(tokens=tokens, deviation_tokens=deviation)


def estimate(
    remaining: Remaining | Unknown, speed: Speed, *, min_observed_s: float = MIN_OBSERVED_S
) -> Estimate | Unknown:
    """Return the time left, or why it is unknown."""
    if isinstance(remaining, Unknown):
        return remaining
    if remaining.tokens <= 0:
        return Estimate(low_s=0.0, mid_s=0.0, high_s=0.0)
    if speed.observed_s < min_observed_s:
        return Unknown(why=f"estimating: {int(speed.observed_s)} of {int(min_observed_s)} s seen")
    if speed.tokens_per_s <= 0:
        return Unknown(why="no tokens are coming")
    mid_s = remaining.tokens / speed.tokens_per_s
    if not isfinite(mid_s) or mid_s > _LONGEST_S:
        return Unknown(why="more than ten years at this speed")
    spread = 1 + _Z * sqrt(
        (remaining.deviation_tokens / remaining.tokens) ** 2
        + (speed.deviation_tokens_per_s / speed.tokens_per_s) ** 2
    )
    return Estimate(
        low_s=mid_s / spread, mid_s=mid_s, high_s=max(mid_s, min(mid_s * spread, _LONGEST_S))
    )
