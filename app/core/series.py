"""Speeds over time: points, gaps, buckets for a chart, and what may be forgotten with age.

Owns the arithmetic of a run's history; where the points are kept is the recorder's. Pure. Moments
are seconds since 1970, tokens counters that only rise. Invariant: a stretch in which nothing was
recorded is a gap (None), never a zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import ceil
from typing import NamedTuple

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S
BEST_WINDOW_S = 300.0
SPARK_PIECE_S = 30.0
N_SPARK_PIECES = 60
# from this age on, one row for each so many seconds is kept
_TIERS = ((DAY_S, 600), (HOUR_S, 60))
# points further apart than so many times what is kept at their age have a gap between them
_GAP_RATIO = 2.5
# a mean of less than this is chance
_MIN_MEAN_S = 10.0
_ROUNDING_S = 1.0
_INSIDE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Speeds of a run in equal buckets from `begin` to `end`; None where nothing was recorded.

    `own` is what our workers received, `server` what the servers counted themselves (of a run
    only). `concurrency_requests` is how many requests were wanted in flight at the end of each
    bucket. `aways` are the stretches in which no server answered, the earliest first.
    """

    begin: datetime
    end: datetime
    own_tokens_per_s: tuple[float | None, ...] = ()
    server_tokens_per_s: tuple[float | None, ...] = ()
    concurrency_requests: tuple[float | None, ...] = ()
    aways: tuple[tuple[datetime, datetime], ...] = ()


class Mark(NamedTuple):
    """What had been received at a moment. `session` is the service that saw it."""

    at_s: float
    tokens: int
    session: int


class Piece(NamedTuple):
    """A stretch of time in which the speed, or what a gauge showed, is known."""

    begin_s: float
    end_s: float
    tokens_per_s: float


class Row(NamedTuple):
    """A stored snapshot: when, and of which session of the service."""

    at_ms: int
    session: int


def pieces(marks: Sequence[Mark], now_s: float, step_s: float) -> list[Piece]:
    """Return the stretches between marks that follow each other; `step_s` is how dense they are."""
    return [
        Piece(before.at_s, mark.at_s, (mark.tokens - before.tokens) / (mark.at_s - before.at_s))
        for before, mark in pairwise(marks)
        if _is_joined(before, mark, now_s, step_s) and mark.tokens >= before.tokens
    ]


def gauge_pieces(
    marks: Sequence[Mark], values: Sequence[float | None], now_s: float, step_s: float
) -> list[Piece]:
    """Return what a gauge showed: each value holds for the time since the mark before it."""
    return [
        Piece(before.at_s, mark.at_s, value)
        for (before, mark), value in zip(pairwise(marks), values[1:], strict=True)
        if value is not None and _is_joined(before, mark, now_s, step_s)
    ]


def _is_joined(before: Mark, mark: Mark, now_s: float, step_s: float) -> bool:
    if before.session != mark.session:
        return False
    kept_every_s = kept_every_ms(int((now_s - before.at_s) * 1000)) / 1000
    return 0 < mark.at_s - before.at_s <= _GAP_RATIO * max(step_s, kept_every_s)


def buckets(
    known: Sequence[Piece], begin_s: float, end_s: float, n_buckets: int
) -> tuple[float | None, ...]:
    """Return the mean speed of each of n equal buckets over the time in it that is known."""
    width_s = (end_s - begin_s) / n_buckets if n_buckets > 0 else 0.0
    if width_s <= 0:
        return (None,) * max(0, n_buckets)
    tokens, covered_s = [0.0] * n_buckets, [0.0] * n_buckets
    for piece in known:
        first = max(0, int((piece.begin_s - begin_s) // width_s))
        last = min(n_buckets - 1, int((piece.end_s - begin_s) // width_s))
        for index in range(first, last + 1):
            left_s = max(piece.begin_s, begin_s + index * width_s)
            right_s = min(piece.end_s, begin_s + (index + 1) * width_s)
            if right_s > left_s:
                tokens[index] += piece.tokens_per_s * (right_s - left_s)
                covered_s[index] += right_s - left_s
    return tuple(
        one / seconds if seconds > 0 else None
        for one, seconds in zip(tokens, covered_s, strict=True)
    )


def held(
    known: Sequence[Piece], begin_s: float, end_s: float, n_buckets: int
) -> tuple[float | None, ...]:
    """Return what a gauge showed last in each of n equal buckets: steps, no means of them.

    >>> held([Piece(0, 15, 64.0), Piece(15, 20, 96.0)], 0, 30, 3)
    (64.0, 96.0, None)
    """
    width_s = (end_s - begin_s) / n_buckets if n_buckets > 0 else 0.0
    found: list[float | None] = [None] * max(0, n_buckets)
    if width_s <= 0:
        return tuple(found)
    for piece in known:
        first = max(0, int((piece.begin_s - begin_s) // width_s))
        last = min(n_buckets - 1, ceil((piece.end_s - begin_s) / width_s) - 1)
        found[first : last + 1] = [piece.tokens_per_s] * max(0, last + 1 - first)
    return tuple(found)


def stretches(known: Sequence[Piece], begin_s: float, end_s: float) -> list[tuple[float, float]]:
    """Return the time that these pieces cover inside a range, in as few stretches as they leave.

    >>> stretches([Piece(0, 10, 1.0), Piece(10, 20, 1.0), Piece(30, 40, 1.0)], 5, 35)
    [(5, 20), (30, 35)]
    """
    found: list[tuple[float, float]] = []
    for piece in known:
        first_s, last_s = max(piece.begin_s, begin_s), min(piece.end_s, end_s)
        if found and first_s <= found[-1][1] < last_s:
            found[-1] = (found[-1][0], last_s)
        elif first_s < last_s:
            found.append((first_s, last_s))
    return found


def spark(known: Sequence[Piece], now_s: float) -> tuple[float | None, ...]:
    """Return the last half hour in 60 pieces; their borders stand still while time goes on."""
    end_s = (now_s // SPARK_PIECE_S + 1) * SPARK_PIECE_S
    return buckets(known, end_s - N_SPARK_PIECES * SPARK_PIECE_S, end_s, N_SPARK_PIECES)


def mean(known: Sequence[Piece], begin_s: float, end_s: float) -> float | None:
    """Return the mean speed over what is known of the time; None if that is next to nothing."""
    tokens, covered_s = _sum(known, begin_s, end_s)
    return tokens / covered_s if covered_s >= _MIN_MEAN_S else None


def five_minutes(known: Sequence[Piece], now_s: float) -> float | None:
    """Return the mean of the last five minutes, None unless all of them are known."""
    begin_s = now_s - BEST_WINDOW_S
    tokens, covered_s = _sum(known, begin_s, now_s)
    return tokens / covered_s if covered_s >= BEST_WINDOW_S - _ROUNDING_S else None


def _sum(known: Sequence[Piece], begin_s: float, end_s: float) -> tuple[float, float]:
    tokens = covered_s = 0.0
    for piece in known:
        seconds = min(piece.end_s, end_s) - max(piece.begin_s, begin_s)
        if seconds > 0:
            tokens += piece.tokens_per_s * seconds
            covered_s += seconds
    return tokens, covered_s


def surplus(rows: Sequence[Row], now_ms: int) -> list[int]:
    """Return the moments of the rows that may go; `rows` rise, and begin where a bucket begins.

    Kept are the first of each minute from an hour on, of each ten minutes from a day on, and the
    ends of each session: what lies between two of these is no time of ours.
    """
    found: list[int] = []
    last: tuple[int, int] | None = None
    for index, row in enumerate(rows):
        every_ms = kept_every_ms(now_ms - row.at_ms)
        bucket = (every_ms, row.at_ms // every_ms) if every_ms else None
        around = rows[max(0, index - 1) : index + 2]
        is_inside = len(around) == _INSIDE and {each.session for each in around} == {row.session}
        if bucket is not None and bucket == last and is_inside:
            found.append(row.at_ms)
        last = bucket
    return found


def kept_every_ms(age_ms: int) -> int:
    """Return of how much time one row is kept at that age, 0 where all are."""
    return next((every_s * 1000 for from_s, every_s in _TIERS if age_ms >= from_s * 1000), 0)
