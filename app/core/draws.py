"""How far the ends may lie from the likely ones: 200 draws, and the 10-90 % range of them.

Owns what is uncertain: the lengths' mean (Greenwood's error), what the answers to come happen to
sum up to, how fast it was in other stretches of the recent past (a bootstrap over blocks), how the
server speeds up when less runs on it, when the very last answer ends, and what no model knows.
Draws go through the slopes of the simulation, not through it: 200 of a run of eight partitions
take as long as a dozen simulations. Pure; the same for the same `seed`.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log, sqrt
from operator import mul
from random import Random

from app.core.endgame import LIKELY_LEFT
from app.core.estimate import Estimate
from app.core.fluid import End, Ground, Part, simulate
from app.core.rates import block_means
from app.core.works import Server, Work

N_DRAWS = 200
_NUDGE = 0.05
_MOST_ERROR_RATIO = 1.0
_MODEL_ERROR_RATIO = 0.02
_LOW, _HIGH = 0.1, 0.9
# past this a figure is noise, and would overflow a date
_LONGEST_S = 10 * 365 * 86400.0


def draws_of(
    works: Sequence[Work],
    parts: Sequence[Part],
    ground: Ground,
    server: Server,
    ends: Sequence[End],
    seed: int,
) -> list[list[float]]:
    """Return 200 possible ends in seconds of each partition; `ends` are the likely ones."""
    random = Random(seed)  # noqa: S311 - dice, not secrets
    base = [end.at_s for end in ends]
    slopes = list(zip(*_slopes(parts, ground, base), strict=True))  # by the end that moves
    bend = _bend(parts, ground, base, server)
    speeds = block_means(server.slownesses, server.weights, N_DRAWS, random)
    errors = [_error_ratios(work) for work in works]
    likely = [part.decline.steps_until(LIKELY_LEFT) for part in parts]
    draws: list[list[float]] = [[] for _ in works]
    for k in range(N_DRAWS):
        moves = [
            exp(random.gauss(0, of_mean)) * (1 + random.gauss(0, of_sum)) - 1
            for of_mean, of_sum in errors
        ]
        bent = random.gauss(0, 1)
        speed = speeds[k] / server.slowness if server.slownesses else 1.0
        speed *= exp(random.gauss(0, _MODEL_ERROR_RATIO))
        for i, part in enumerate(parts):
            at_s = base[i] + bent * bend[i]
            at_s += sum(map(mul, slopes[i], moves))
            left = -log(1 - random.random())  # how many were expected left when none was
            at_s += (part.decline.steps_until(left) - likely[i]) * ends[i].step_s
            draws[i].append(min(_LONGEST_S, max(0.0, at_s * speed)))
    return draws


def _slopes(parts: Sequence[Part], ground: Ground, base: Sequence[float]) -> list[list[float]]:
    """Return, for each partition, how all ends move if its bulk is so much longer."""
    slopes = []
    for i, part in enumerate(parts):
        if part.decline.bulk_steps <= 0:
            slopes.append([0.0] * len(parts))
            continue
        factors = [1 + _NUDGE * (i == j) for j in range(len(parts))]
        moved = simulate(parts, ground, factors)
        slopes.append([(end.at_s - at_s) / _NUDGE for end, at_s in zip(moved, base, strict=True)])
    return slopes


def _bend(
    parts: Sequence[Part], ground: Ground, base: Sequence[float], server: Server
) -> list[float]:
    """Return how the ends move by one standard deviation of the curve's bend.

    The present speed is known whatever the bend: both curves meet there.
    """
    spread = server.curve.half_spread
    if spread <= 0:
        return [0.0] * len(parts)
    running = sum(
        part.decline.in_flight[0] * part.mean_tokens / (part.mean_tokens + ground.wait_steps)
        for part in parts
        if part.after is None
    )
    bent = server.curve.bent(exp(spread / 2))
    slowness = ground.slowness * ground.curve.step_s(running) / bent.step_s(running)
    moved = simulate(parts, replace(ground, curve=bent, slowness=slowness))
    return [2 * (end.at_s - at_s) for end, at_s in zip(moved, base, strict=True)]


def _error_ratios(work: Work) -> tuple[float, float]:
    """Return how wrong the mean length may be, and how far the sum to come strays from it."""
    of_mean = work.lengths.mean_error_tokens / work.mean_tokens
    n = max(1, work.n_fresh + len(work.begun_tokens))
    return (
        min(_MOST_ERROR_RATIO, sqrt(of_mean**2 + work.mean_error_ratio**2)),
        work.lengths.deviation_tokens / work.mean_tokens / sqrt(n),
    )


def range_of(draws: Sequence[float], mid_s: float) -> Estimate:
    """Return the 10-90 % range of the draws, about the likely value."""
    ordered = sorted(draws)
    mid_s = min(mid_s, _LONGEST_S)
    return Estimate(
        low_s=min(mid_s, ordered[int(_LOW * len(ordered))]),
        mid_s=mid_s,
        high_s=max(mid_s, ordered[int(_HIGH * len(ordered))]),
    )
