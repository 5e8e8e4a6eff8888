"""How fast a server goes by how much runs on it, learnt from what was seen.

Owns the step curve: a decode step with n requests takes `start_s + per_request_s * n` seconds and
gives each one token. It is fitted to pairs (requests running, tokens a second); and the mean of
recent pieces of time. Pure. Invariant: both constants are finite and not negative.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from random import Random

HALF_LIFE_S = 1800.0
# The fallback where one level only was seen: half of the full speed is reached at so many requests.
# It is that of a server which makes 90, 1,000 and 1,350 tokens a second at 1, 32 and 150 in flight.
ASSUMED_HALF_REQUESTS = 16.0
_ASSUMED_SPREAD = log(3.0)
_LEVEL_NOISE_RATIO = 0.02
_FULL_WEIGHT_S = 60.0
_N_HALVES = 61
_HALVES = tuple(exp(log(1024.0) * i / (_N_HALVES - 1)) for i in range(_N_HALVES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What was seen while about `n_requests` ran: so many tokens a second, for so long."""

    n_requests: float
    tokens_per_s: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCurve:
    """`half_spread`: the standard deviation of the logarithm of start_s / per_request_s."""

    start_s: float
    per_request_s: float
    half_spread: float = 0.0

    @property
    def half_requests(self) -> float:
        return self.start_s / self.per_request_s

    def step_s(self, n_requests: float) -> float:
        return self.start_s + self.per_request_s * n_requests

    def bent(self, factor: float) -> "StepCurve":
        """Return the curve with `factor` times the half requests, otherwise unscaled."""
        return StepCurve(start_s=self.half_requests * factor, per_request_s=1.0)


def fit_steps(levels: Sequence[Level]) -> StepCurve | None:
    """Return the curve that fits the levels best; None if nothing was seen.

    Least squares of the relative error over a grid of start_s / per_request_s, with a weak prior
    at `ASSUMED_HALF_REQUESTS`, which decides alone where only one level was seen.
    """
    seen = [each for each in levels if each.n_requests > 0 and each.tokens_per_s > 0]
    if not seen:
        return None
    weights = [min(1.0, each.seconds / _FULL_WEIGHT_S) for each in seen]
    steps = [each.n_requests / each.tokens_per_s for each in seen]
    fits: list[tuple[float, float, float]] = []  # loss, half, per_request_s
    for half in _HALVES:
        ratios = [step / (half + each.n_requests) for step, each in zip(steps, seen, strict=True)]
        scale = sum(w * r for w, r in zip(weights, ratios, strict=True)) / sum(weights)
        misfit = sum(w * (r / scale - 1) ** 2 for w, r in zip(weights, ratios, strict=True))
        prior = (log(half / ASSUMED_HALF_REQUESTS) / _ASSUMED_SPREAD) ** 2
        fits.append((misfit / _LEVEL_NOISE_RATIO**2 + prior, half, scale))
    least = min(fits)[0]
    odds = [exp(-(loss - least) / 2) for loss, _, _ in fits]
    logs = [log(half) for _, half, _ in fits]
    mean = sum(o * x for o, x in zip(odds, logs, strict=True)) / sum(odds)
    variance = sum(o * (x - mean) ** 2 for o, x in zip(odds, logs, strict=True)) / sum(odds)
    half = exp(mean)
    ratios = [step / (half + each.n_requests) for step, each in zip(steps, seen, strict=True)]
    scale = sum(w * r for w, r in zip(weights, ratios, strict=True)) / sum(weights)
    return StepCurve(start_s=half * scale, per_request_s=scale, half_spread=sqrt(variance))


def fading_weights(ages_s: Sequence[float], half_life_s: float = HALF_LIFE_S) -> list[float]:
    """Return what each piece of time counts, by its age: half as much after each half-life."""
    return [0.5 ** (age_s / half_life_s) for age_s in ages_s]


def block_means(
    values: Sequence[float], weights: Sequence[float], n_draws: int, random: Random
) -> list[float]:
    """Return weighted means of `values` drawn anew with replacement (a bootstrap over blocks)."""
    if not values:
        return [1.0] * n_draws
    places = range(len(values))
    means = []
    for _ in range(n_draws):
        drawn = random.choices(places, k=len(values))
        weight = sum(weights[i] for i in drawn)
        means.append(sum(values[i] * weights[i] for i in drawn) / weight)
    return means
