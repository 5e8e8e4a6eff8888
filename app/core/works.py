"""The work that is left, as the simulation wants it: parts with their declines, and their ground.

Owns how lengths, slots and the recent past become `core/fluid`'s parts: the wait in the server's
queue, the memory that is full while answers wait, and the pace of each partition's slots. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.endgame import decline
from app.core.fluid import Ground, Part
from app.core.lengths import Lengths
from app.core.rates import StepCurve

_FEW_WAIT_RATIO = 0.02
_FULL_RATIO = 0.9
_N_BISECTIONS = 40
_MOST_WAIT_STEPS = 1e7
_PACE_LIMIT = 3.0
# a measured pace is believed in full only after many answers: few are as lucky as they are slow
_PACE_ANSWERS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is left of one partition, and how it went lately.

    `begun_tokens` are the lengths so far of answers begun and not ended, `n_fresh` how many are to
    be sent yet. `n_in_flight` is of now, `tokens_per_slot_s` how fast each of them went
    lately; both 0 if it did not work. `observed_tokens` came meanwhile.
    `mean_error_ratio` comes on top of what the lengths say of themselves.
    """

    name: str
    group: str
    lengths: Lengths
    begun_tokens: Sequence[int]
    n_fresh: int
    prompt_tokens: float = 0.0
    n_in_flight: float = 0.0
    tokens_per_slot_s: float = 0.0
    observed_tokens: float = 0.0
    mean_error_ratio: float = 0.0
    after: str | None = None

    @property
    def mean_tokens(self) -> float:
        """Return the mean of an answer, those that come out empty included."""
        if not self.lengths.n_finished:
            return self.lengths.expected()
        return max(1.0, self.lengths.area_above(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """How fast it went lately: `slowness` is the mean step against the curve's.

    `slownesses` are those of equal blocks of time with their weights; `running_ratio` is the share
    of what is in flight that runs now, None where the server does not say.
    """

    curve: StepCurve
    slowness: float = 1.0
    slownesses: Sequence[float] = ()
    weights: Sequence[float] = ()
    running_ratio: float | None = None


def prepare(
    works: Sequence[Work],
    server: Server,
    limits: Mapping[str, float],
    claims_tokens: float | None = None,
) -> tuple[list[Part], Ground]:
    """Return what is to be simulated. See `core/forecast.forecast` for the arguments."""
    limits = _used_limits(works, limits)
    wait = _wait_steps(works, server.running_ratio or 1.0)
    parts = [
        Part(
            name=work.name,
            group=work.group,
            decline=decline(
                work.lengths, work.begun_tokens, work.n_fresh, _slots(work, works, limits), wait
            ),
            mean_tokens=work.mean_tokens,
            hold_tokens=work.prompt_tokens + _mean_age(work.lengths),
            fresh_tokens=work.n_fresh * work.mean_tokens,
            pace=_pace(work, works, server),
            after=work.after,
        )
        for work in works
    ]
    return parts, _ground(works, parts, server, limits, wait, claims_tokens)


def _used_limits(works: Sequence[Work], limits: Mapping[str, float]) -> Mapping[str, float]:
    """Return the slots that groups really fill: something else may hold their workers back."""
    used = dict(limits)
    for group, limit in limits.items():
        mine = [work for work in works if work.group == group and work.n_in_flight > 0]
        flying = sum(work.n_in_flight for work in mine)
        if flying < _FULL_RATIO * limit and any(work.n_fresh > 0 for work in mine):
            used[group] = max(1.0, flying)
    return used


def _ratio(work: Work, wait: float) -> float:
    return work.mean_tokens / (work.mean_tokens + wait)


def _wait_steps(works: Sequence[Work], running_ratio: float) -> float:
    """Return the wait, in steps, that leaves the observed share of what is in flight running."""
    flying = sum(work.n_in_flight for work in works)
    if flying <= 0 or running_ratio >= 1 - _FEW_WAIT_RATIO:
        return 0.0
    low, high = 0.0, _MOST_WAIT_STEPS
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2
        running = sum(work.n_in_flight * _ratio(work, middle) for work in works)
        low, high = (middle, high) if running > running_ratio * flying else (low, middle)
    return high


def _slots(work: Work, works: Sequence[Work], limits: Mapping[str, float]) -> float:
    """Return the share of its group that a partition has now, or will have when it begins."""
    mine = [each for each in works if each.group == work.group and each.after == work.after]
    ending = [each for each in mine if not each.n_fresh]
    taken = sum(len(each.begun_tokens) for each in ending)
    sending = max(1, len(mine) - len(ending))
    return max(1.0, (limits[work.group] - taken) / sending)


def _mean_age(lengths: Lengths) -> float:
    """Return the mean length so far of a running answer: E[L * L] / (2 E[L])."""
    mean = max(1.0, lengths.area_above(0))
    return (mean * mean + lengths.deviation_tokens**2) / (2 * mean)


def _pace(work: Work, works: Sequence[Work], server: Server) -> float:
    """Return how fast its slots went against those of the others, as far as it can be told.

    Where the server says how much waits, the wait explains it.
    """
    seen = [each for each in works if each.n_in_flight > 0 and each.tokens_per_slot_s > 0]
    if server.running_ratio is not None or work not in seen:
        return 1.0
    flying = sum(each.n_in_flight for each in seen)
    mean = sum(each.n_in_flight * each.tokens_per_slot_s for each in seen) / flying
    if not mean:  # too small for a number
        return 1.0
    ratio = min(_PACE_LIMIT, max(1 / _PACE_LIMIT, work.tokens_per_slot_s / mean))
    n_answers = work.observed_tokens / work.mean_tokens
    return float(ratio ** (n_answers / (n_answers + _PACE_ANSWERS)))


def _ground(
    works: Sequence[Work],
    parts: Sequence[Part],
    server: Server,
    limits: Mapping[str, float],
    wait: float,
    claims_tokens: float | None,
) -> Ground:
    held = sum(
        work.n_in_flight * _ratio(work, wait) * part.hold_tokens
        for work, part in zip(works, parts, strict=True)
    )
    begun = sum(begun_tokens_left(work) for work in works)
    return Ground(
        limits=limits,
        curve=server.curve,
        slowness=server.slowness,
        wait_steps=wait,
        held_tokens=held if wait > 0 else None,
        claims_tokens=None if claims_tokens is None else claims_tokens - begun,
    )


def begun_tokens_left(work: Work) -> float:
    """Return what the answers that were begun are expected to bring still."""
    return sum(
        work.lengths.expected(made) - made
        for made in work.begun_tokens
        if made < work.lengths.cap_tokens
    )
