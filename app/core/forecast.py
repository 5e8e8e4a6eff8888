"""When each partition and the run will have ended, with 10-90 % ranges.

Owns how the pieces come together: works are prepared (`core/works`), simulated (`core/fluid`) and
drawn around (`core/draws`). Pure; the draws are the same for the same `seed`.
Invariant: 0 <= low <= mid <= high, all finite; the run does not end before its partitions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from app.core.draws import draws_of, range_of
from app.core.estimate import Estimate
from app.core.fluid import simulate
from app.core.works import Server, Work, prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """`ends` by partition. `decided_by` is the partition that ends last, None if none is left."""

    ends: Mapping[str, Estimate]
    run: Estimate
    decided_by: str | None


def forecast(
    works: Sequence[Work],
    server: Server,
    limits: Mapping[str, float],
    *,
    claims_tokens: float | None = None,
    seed: int = 0,
) -> Forecast:
    """Return when all of `works` will have ended; `limits` are the slots of each group.

    `claims_tokens` are the output tokens that the run's budget leaves for what is in flight and to
    be sent; None without one.
    """
    if not works:
        nothing = Estimate(low_s=0.0, mid_s=0.0, high_s=0.0)
        return Forecast(ends={}, run=nothing, decided_by=None)
    parts, ground = prepare(works, server, limits, claims_tokens)
    ends = simulate(parts, ground)
    draws = draws_of(works, parts, ground, server, ends, seed)
    found = {
        work.name: range_of(draw, end.at_s)
        for work, draw, end in zip(works, draws, ends, strict=True)
    }
    # the last of several is later than the likely end of each
    together = [max(each) for each in zip(*draws, strict=True)]
    last = max(range(len(works)), key=lambda i: ends[i].at_s)
    run = range_of(together, max(ends[last].at_s, median(together)))
    return Forecast(ends=found, run=run, decided_by=works[last].name)
