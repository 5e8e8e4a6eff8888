"""How long answers are, learned also from those that are still being made.

Owns the Kaplan-Meier model of one partition's answer lengths: finished answers are deaths, the
lengths so far of unfinished ones are censored. The mean of the finished alone is too small for
hours, because long answers finish last. The cap is an atom: no answer is longer.
Invariant: above < expected(above) <= cap for every above < cap, and it never falls as above grows.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import exp, expm1, log, sqrt


@dataclass(frozen=True, slots=True)
class Lengths:
    """The survival curve of one partition's answers, and what it says of an answer's length.

    `survival[i]` is the share of answers that are longer than `at_tokens[i]`; between two points
    it is level. Past the last finished length nothing is known; there it falls exponentially at
    `tail_per_token`, the hazard of the curve's upper part, and ends at the cap.
    """

    cap_tokens: int
    n_finished: int
    at_tokens: Sequence[int]
    survival: Sequence[float]
    tail_per_token: float
    area: Sequence[float] = field(repr=False)
    """`area[i]`: the area under the curve from `at_tokens[i]` to the cap."""
    deviation_tokens: float = field(repr=False)
    """The standard deviation of a length."""
    mean_error_tokens: float = field(repr=False, default=0.0)
    """The standard error of the mean length, by Greenwood's formula for the area of the curve."""

    @classmethod
    def learn(cls, *, finished: Iterable[int], running: Iterable[int], cap: int) -> "Lengths":
        """Build the model, in O(n log n), from final lengths and lengths so far.

        What is longer than the cap counts as the cap (the cap may have been lowered since).
        """
        ended = [(min(length, cap), False) for length in finished]
        going = [(min(length, cap), True) for length in running]
        at, survival, spread = _survival(sorted(ended + going))
        rate = _tail_rate(at, survival)
        area = _areas(at, survival, rate, cap)
        return cls(
            cap_tokens=cap,
            n_finished=len(ended),
            at_tokens=at,
            survival=survival,
            tail_per_token=rate,
            area=area,
            deviation_tokens=_deviation(at, survival, rate, cap) if ended else 0.0,
            mean_error_tokens=_mean_error(area, spread) if ended else 0.0,
        )

    def survival_above(self, length: float) -> float:
        """Return the share of answers that are longer than `length`; the cap ends them all."""
        if length >= self.cap_tokens:
            return 0.0
        i = bisect_right(self.at_tokens, length) - 1
        if i < len(self.at_tokens) - 1:
            return self.survival[i]
        return self.survival[i] * exp(-self.tail_per_token * (length - self.at_tokens[i]))

    def area_above(self, length: float) -> float:
        """Return the area under the curve from `length` to the cap; from 0 on it is the mean."""
        if length >= self.cap_tokens:
            return 0.0
        i = bisect_right(self.at_tokens, length) - 1
        if i < len(self.at_tokens) - 1:
            return self.area[i] - (length - self.at_tokens[i]) * self.survival[i]
        room = self.cap_tokens - length
        return self.survival_above(length) * _tail_length(self.tail_per_token, room)

    def expected(self, above: int = 0) -> float:
        """Return the mean length of the answers that are longer than `above`, in O(log n).

        With nothing finished it is the middle between `above` and the cap; callers that must not
        be wrong look at `n_finished` first.
        """
        if above >= self.cap_tokens:
            return float(self.cap_tokens)
        if not self.n_finished:
            return (above + self.cap_tokens) / 2
        i = bisect_right(self.at_tokens, above) - 1
        if i == len(self.at_tokens) - 1:
            further = _tail_length(self.tail_per_token, self.cap_tokens - above)
        else:
            area = self.area[i] - (above - self.at_tokens[i]) * self.survival[i]
            further = area / self.survival[i]
        # lengths are whole: the next possible one is the least, whatever the rounding says
        return min(float(self.cap_tokens), above + max(1.0, further))


def _survival(events: list[tuple[int, bool]]) -> tuple[list[int], list[float], list[float]]:
    """Return the curve's points; an answer censored at x is known to be longer than x.

    With each point comes d / (n * (n - d)), for d of n that were still going having ended there:
    what it adds to the relative variance of the curve behind it.
    """
    at, survival, spread = [0], [1.0], [0.0]
    at_risk, alive = len(events), 1.0
    for length, group in groupby(events, key=lambda event: event[0]):
        here = [censored for _, censored in group]
        deaths = here.count(False)
        if deaths:
            # exactly 0 when all end here: 1 - n/n is, and a product with it is
            alive *= 1 - deaths / at_risk
            if length == 0:
                survival[0] = alive
            else:
                at.append(length)
                survival.append(alive)
                spread.append(deaths / (at_risk * max(1, at_risk - deaths)))
        at_risk -= len(here)
    return at, survival, spread


def _tail_rate(at: Sequence[int], survival: Sequence[float]) -> float:
    """Return the hazard per token past the last death: that of the last halving of the curve."""
    last, alive = at[-1], survival[-1]
    if alive > 0:
        for length, share in zip(at, survival, strict=True):
            if share <= 2 * alive and length < last and share > alive:
                return log(share / alive) / (last - length)
    return 1 / max(last, 1)


def _tail_length(rate: float, room: float) -> float:
    """Return the mean further length of what has `room` tokens to go before the cap."""
    return -expm1(-rate * room) / rate


def _areas(at: Sequence[int], survival: Sequence[float], rate: float, cap: int) -> list[float]:
    area = [0.0] * len(at)
    area[-1] = survival[-1] * _tail_length(rate, max(0, cap - at[-1]))
    for i in range(len(at) - 2, -1, -1):
        area[i] = area[i + 1] + (at[i + 1] - at[i]) * survival[i]
    return area


def _mean_error(area: Sequence[float], spread: Sequence[float]) -> float:
    """Return the standard error of the mean: each death moves all of the area that is behind it.

    The tail is an assumption, and counts as known give or take half.
    """
    known = sum(behind * behind * term for behind, term in zip(area, spread, strict=True))
    return sqrt(known + (area[-1] / 2) ** 2)


def _deviation(at: Sequence[int], survival: Sequence[float], rate: float, cap: int) -> float:
    """Return the standard deviation: E[L] is the integral of S, E[L*L] that of 2 x S(x)."""
    points = list(zip(at, at[1:], survival, strict=False))
    room, last, alive = max(0, cap - at[-1]), at[-1], survival[-1]
    tail = _tail_length(rate, room)
    mean = sum((right - left) * share for left, right, share in points) + alive * tail
    square = sum((right * right - left * left) * share for left, right, share in points)
    square += 2 * alive * (last * tail + tail / rate - room * exp(-rate * room) / rate)
    return sqrt(max(0.0, square - mean * mean))
