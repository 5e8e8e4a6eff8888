"""What of a forecast is shown: withheld until it means something, and moving slowly.

Owns the gates (enough answers ended, enough steady running seen, begun anew after each control
change) and the smoothing of the shown moment. Its caller keeps the `Shown` of before. Pure.
Invariant: a shown estimate is ordered and not negative; without a control change its moment moves
by at most a tenth of the span that remains or a third of the gap, whichever is more: so that it
comes to any new forecast within a few steps, from nothing left too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, copysign

from app.core import format as words
from app.core.estimate import MIN_ENDED, Estimate, Unknown

ENOUGH_ANSWERS = 50
ENOUGH_RATIO = 0.02
MAX_STEADY_S = 600.0
MIN_STEADY_S = 10.0
STEADY_RATIO = 0.05
MOST_MOVED_RATIO = 0.1
GAP_MOVED_RATIO = 1 / 3


def answers_needed(n_wanted: int) -> int:
    """Return how many answers must have ended: 50 or 2 %, but always a few.

    >>> answers_needed(100_000), answers_needed(1000), answers_needed(8)
    (50, 20, 5)
    """
    return max(MIN_ENDED, min(ENOUGH_ANSWERS, ceil(ENOUGH_RATIO * n_wanted)))


def too_few(n_ended: int, n_wanted: int) -> Unknown | None:
    """Return why nothing is shown yet, None where enough answers have ended."""
    needed = answers_needed(n_wanted)
    if n_ended >= needed:
        return None
    return Unknown(why=f"estimating: {n_ended:,} of {needed:,} answers have ended")


def steady_needed_s(left_s: float, observed_s: float) -> float:
    """Return how long steady running must have been seen: ten minutes, less of what is short.

    >>> steady_needed_s(40_000, 60), steady_needed_s(85, 5), steady_needed_s(3_600, 0)
    (600.0, 10.0, 180.0)
    """
    return min(MAX_STEADY_S, max(MIN_STEADY_S, STEADY_RATIO * (left_s + observed_s)))


def not_steady(left_s: float, observed_s: float, *, is_again: bool) -> Unknown | None:
    """Return why nothing is shown yet, None after enough steady running.

    `is_again`: a control was changed, and what was seen before says nothing any more.
    """
    missing_s = steady_needed_s(left_s, observed_s) - observed_s
    if missing_s <= 0:
        return None
    word = "re-estimating" if is_again else "estimating"
    return Unknown(why=f"{word} ({words.span(max(1.0, missing_s))})")


def not_begun(n_changes: int, *, has_tokens: bool) -> Unknown:
    """Return why nothing is shown while no speed is known: none measured yet, or none begun.

    >>> not_begun(0, has_tokens=False).why, not_begun(0, has_tokens=True).why
    ('estimating: no tokens have come yet', 'estimating (10 s)')
    """
    if has_tokens:
        word = "re-estimating" if n_changes else "estimating"
        return Unknown(why=f"{word} ({words.span(MIN_STEADY_S)})")
    return Unknown(why="estimating: no tokens have come yet")


def at_least(run: Estimate, others: Sequence[Estimate]) -> Estimate:
    """Return the run's time left, not less than any of those of its partitions.

    >>> one, two = (Estimate(low_s=n - 2, mid_s=n, high_s=n + 3) for n in (100, 90))
    >>> at_least(two, [one]) == at_least(one, [two]) == one
    True
    """
    every = [run, *others]
    return Estimate(
        low_s=max(each.low_s for each in every),
        mid_s=max(each.mid_s for each in every),
        high_s=max(each.high_s for each in every),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An estimate as it was shown `at_s`, under the controls `n_changes`."""

    estimate: Estimate
    at_s: float
    n_changes: int

    def passed(self, now_s: float) -> Estimate:
        """Return the estimate counted down by the time that has passed."""
        passed_s = max(0.0, now_s - self.at_s)
        low, mid, high = (
            max(0.0, each - passed_s)
            for each in (self.estimate.low_s, self.estimate.mid_s, self.estimate.high_s)
        )
        return Estimate(low_s=low, mid_s=mid, high_s=high)


def smoothed(new: Estimate, before: Shown | None, now_s: float, n_changes: int) -> Shown:
    """Return what to show: the new estimate, near to what was shown before."""
    if before is None or before.n_changes != n_changes:
        return Shown(estimate=new, at_s=now_s, n_changes=n_changes)
    old = before.passed(now_s)
    low, mid, high = (
        _moved(was, is_now, MOST_MOVED_RATIO * old.mid_s)
        for was, is_now in (
            (old.low_s, new.low_s),
            (old.mid_s, new.mid_s),
            (old.high_s, new.high_s),
        )
    )
    ordered = Estimate(low_s=min(low, mid), mid_s=mid, high_s=max(mid, high))
    return Shown(estimate=ordered, at_s=now_s, n_changes=n_changes)


def _moved(was_s: float, is_now_s: float, most_s: float) -> float:
    """Return where one step leads; where nothing is left, a share of that would lead nowhere."""
    gap_s = is_now_s - was_s
    most_s = max(most_s, GAP_MOVED_RATIO * abs(gap_s))
    return is_now_s if abs(gap_s) <= most_s else was_s + copysign(most_s, gap_s)
