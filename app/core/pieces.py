"""Stretches of the recent past of one run, and what several of them say together.

Owns the piece (tokens and request-seconds of each partition) and the arithmetic over pieces: equal
blocks of time, how long steps took against a curve, the share that ran, and whether the server has
become another one in what it does at the same load. Pure. Pieces come oldest first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import median

from app.core.rates import StepCurve
from app.core.types import PartitionId

SHIFT_RATIO = 2.0
SHIFT_PIECES = 6
SHIFT_S = 60.0
# prompts that are read at the begin of a run take a while, and what gets faster then is no shift
_MIN_PIECES_BEFORE_FASTER = 12
_LIKE_NOW_RATIO = 0.1
_SAME_LEVEL_RATIO = 0.2
_ODD_RATIO = 0.1
_TINY = 1e-9

Block = tuple[float, float, int]


@dataclass(slots=True)
class Piece:
    """A stretch of time: tokens and request-seconds of each partition, and those that ran."""

    begin_s: float
    end_s: float
    tokens: dict[PartitionId, int] = field(default_factory=dict)
    flying_s: dict[PartitionId, float] = field(default_factory=dict)
    running_s: float = 0.0

    @property
    def seconds(self) -> float:
        return self.end_s - self.begin_s

    @property
    def all_tokens(self) -> int:
        return sum(self.tokens.values())

    @property
    def tokens_per_s(self) -> float:
        return self.all_tokens / self.seconds

    @property
    def n_in_flight(self) -> float:
        return sum(self.flying_s.values()) / self.seconds

    @property
    def n_running(self) -> float:
        return self.running_s / self.seconds


class Shift(Enum):
    """How a server differs from what it was."""

    SLOWER = "slower"
    FASTER = "faster"


def shift(pieces: Sequence[Piece], *, was_slower: bool = False) -> Shift | None:
    """Return whether the last minute says that what was seen before holds no more.

    That is so where each of its pieces is over twice as slow, or as fast, as the median of those
    before with as many requests in flight, and as nearly none of them was. Of a server that did not
    get slower first (`was_slower`), faster is believed only against two minutes in which as many
    ran, too.
    """
    new, before = pieces[-SHIFT_PIECES:], pieces[:-SHIFT_PIECES]
    if len(new) < SHIFT_PIECES or sum(each.seconds for each in new) < SHIFT_S - _TINY:
        return None
    level = _mean([each.n_in_flight for each in new])
    if not all(_is_near(each.n_in_flight, level) for each in new):
        return None
    before = [each for each in before if _is_near(each.n_in_flight, level)]
    speeds = sorted(each.tokens_per_s for each in before)
    highest = max(each.tokens_per_s for each in new)
    if speeds and highest < min(median(speeds) / SHIFT_RATIO, speeds[_n_odd(speeds)]):
        return Shift.SLOWER
    if not was_slower:
        running = _mean([each.n_running for each in new])
        speeds = sorted(e.tokens_per_s for e in before if _is_near(e.n_running, running))
    if len(speeds) < (1 if was_slower else _MIN_PIECES_BEFORE_FASTER):
        return None
    lowest = min(each.tokens_per_s for each in new)
    is_faster = lowest > max(median(speeds) * SHIFT_RATIO, speeds[-1 - _n_odd(speeds)])
    return Shift.FASTER if is_faster else None


def _n_odd(speeds: Sequence[float]) -> int:
    """Return how many of the speeds before may lie as far out as the new ones."""
    return int(_ODD_RATIO * len(speeds))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _is_near(n_requests: float, level: float) -> bool:
    return abs(n_requests - level) <= _SAME_LEVEL_RATIO * level


def running_ratio(pieces: Sequence[Piece], weights: Sequence[float], flying: float) -> float:
    """Return the share that ran of what was in flight, while about as many were as are now."""
    running_s = flying_s = 0.0
    for piece, weight in zip(pieces, weights, strict=True):
        mine_s = sum(piece.flying_s.values())
        if abs(mine_s - flying * piece.seconds) <= _LIKE_NOW_RATIO * flying * piece.seconds:
            running_s += weight * piece.running_s
            flying_s += weight * mine_s
    return running_s / flying_s if flying_s > 0 else 1.0


def blocks(
    pieces: Sequence[Piece], weights: Sequence[float], width_s: float
) -> list[tuple[Block, float]]:
    """Return (seconds, request-seconds running, tokens) of each block, and its weight in time."""
    found: list[tuple[Block, float]] = []
    seconds, running_s, tokens, weight = 0.0, 0.0, 0, 0.0
    for piece, counts in zip(pieces, weights, strict=True):
        seconds += piece.seconds
        running_s += piece.running_s
        tokens += piece.all_tokens
        weight += counts * piece.seconds
        if seconds >= width_s - _TINY and tokens:
            found.append(((seconds, running_s, tokens), weight))
            seconds, running_s, tokens, weight = 0.0, 0.0, 0, 0.0
    if not found:
        found.append(((seconds, running_s, max(1, tokens)), max(_TINY, weight)))
    return found


def slowness(block: Block, curve: StepCurve) -> float:
    """Return how long its steps took against the curve's: each token takes a running request's."""
    seconds, running_s, tokens = block
    return (running_s / tokens) / curve.step_s(running_s / seconds)
