"""How much is left, and the shapes of a time left that is known or not.

Owns progress in percent and the remaining tokens of a partition; when they will have been made is
`core/forecast`'s. Invariant: an estimate is finite and 0 <= low <= mid <= high, else it is Unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from app.core.lengths import Lengths
from app.core.types import Counts

MIN_ENDED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """No estimate, and why: words to show in its place.

    `work_s`: how long a paused partition would take if it went on now; None if not known.
    """

    why: str
    work_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Time left, with its 10-90 % range."""

    low_s: float
    mid_s: float
    high_s: float

    def cut_at(self, seconds: float) -> "Estimate":
        """Return the time left where nothing goes on after so many seconds.

        >>> Estimate(low_s=3_000, mid_s=4_000, high_s=5_000).cut_at(4_500)
        Estimate(low_s=3000, mid_s=4000, high_s=4500)
        """
        low, mid, high = (min(each, seconds) for each in (self.low_s, self.mid_s, self.high_s))
        return Estimate(low_s=low, mid_s=mid, high_s=high)


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
    return int(100 * done_share(counts, goal_samples))


def done_share(counts: Counts, goal_samples: int | None = None) -> Fraction:
    """Return the same as an exact share, 0 to 1, to be averaged before anything is rounded."""
    if samples_left(counts, goal_samples) == 0:
        return Fraction(1)
    done = counts.kept if goal_samples is not None else counts.kept + counts.failed
    return Fraction(done, wanted_samples(counts, goal_samples))


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
