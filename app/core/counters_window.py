"""What counters that only grow say of the last seconds: rates, shares and percentiles.

Owns the arithmetic over readings of one server's counters, and notices when they began anew. Pure:
moments are monotonic seconds that the caller gives. Invariants: no result is ever negative, none
spans a new beginning, and what cannot be known is None, never 0.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isinf

# A base this much older than the span still counts: looks do not come at even times.
_SLACK_RATIO = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One reading at `at_s`. `buckets`: how many were at most so long, by limit in seconds."""

    at_s: float
    counters: Mapping[str, float]
    buckets: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A time; with `is_more` all that is known is that it was longer than this."""

    value_s: float
    is_more: bool = False


class CounterWindow:
    """The readings of the last `keep_s` seconds since the counters last began."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s * _SLACK_RATIO
        self._points: deque[Point] = deque()
        self._last: dict[str, float] = {}

    def add(self, point: Point) -> bool:
        """Take a reading; return whether a counter has fallen, and so the window begins anew.

        A counter that a reading lacks says nothing; it is compared when it is back.
        """
        fell = any(value < self._last.get(name, 0.0) for name, value in point.counters.items())
        if fell:
            self.clear()
        self._last.update(point.counters)
        self._points.append(point)
        while point.at_s - self._points[0].at_s > self._keep_s:
            self._points.popleft()
        return fell

    def clear(self) -> None:
        """Begin anew: the server is another one from here on."""
        self._points.clear()
        self._last.clear()

    def growth(self, names: Sequence[str], span_s: float) -> float | None:
        """Return by how much the counters grew together, None if not all are known twice."""
        found = self._ends(names, span_s)
        if found is None:
            return None
        base, newest = found
        return sum(newest.counters[name] - base.counters[name] for name in names)

    def rate_per_s(self, names: Sequence[str], span_s: float) -> float | None:
        found, grown = self._ends(names, span_s), self.growth(names, span_s)
        if found is None or grown is None:
            return None
        return grown / (found[1].at_s - found[0].at_s)

    def share(self, part: Sequence[str], rest: Sequence[str], span_s: float) -> float | None:
        """Return part / (part + rest) of what came in the span; None if nothing came."""
        names = [*part, *rest]
        found = self._ends(names, span_s)
        if found is None:
            return None
        base, newest = found
        grown = {name: newest.counters[name] - base.counters[name] for name in names}
        whole = sum(grown.values())
        return sum(grown[name] for name in part) / whole if whole else None

    def bucket_growth(self, span_s: float) -> dict[float, float]:
        """Return how many of the span were at most so long, by limit; {} if not known."""
        known = [point for point in self._points if inf in point.buckets]
        found = _ends_of(known, span_s)
        if found is None or found[1] is not self._points[-1]:
            return {}
        base, newest = found
        return {
            limit: n - base.buckets[limit]
            for limit, n in newest.buckets.items()
            if limit in base.buckets
        }

    def _ends(self, names: Sequence[str], span_s: float) -> tuple[Point, Point] | None:
        """Return the first and the last reading of the span in which all names are known."""
        known = [p for p in self._points if all(name in p.counters for name in names)]
        found = _ends_of(known, span_s)
        # what the last reading does not tell any more is not known any more
        return found if found is not None and found[1] is self._points[-1] else None


def _ends_of(points: Sequence[Point], span_s: float) -> tuple[Point, Point] | None:
    if not points:
        return None
    newest = points[-1]
    begin_s = newest.at_s - span_s
    before = [p for p in points if begin_s - span_s * (_SLACK_RATIO - 1) <= p.at_s <= begin_s]
    inside = [p for p in points if begin_s < p.at_s < newest.at_s]
    base = before[-1] if before else inside[0] if inside else None
    return None if base is None else (base, newest)


def quantile(buckets: Mapping[float, float], q: float) -> Quantile | None:
    """Return the time that a share `q` did not exceed, straight between the limits of its bucket.

    Above the highest limit only "more than" is known. None if there was nothing.

    >>> quantile({1.0: 5, 2.0: 10, inf: 10}, 0.75)
    Quantile(value_s=1.5, is_more=False)
    >>> quantile({1.0: 5, 2.0: 6, inf: 10}, 0.99)
    Quantile(value_s=2.0, is_more=True)
    """
    limits = sorted(buckets)
    total = buckets.get(inf, 0.0)
    if total <= 0:
        return None
    wanted = q * total
    low_s, n_below = 0.0, 0.0
    for limit in limits:
        n = max(n_below, buckets[limit])  # a reading is not of one instant
        if isinf(limit):
            break
        if n >= wanted and n > n_below:
            inside = max(0.0, wanted - n_below) / (n - n_below)
            return Quantile(value_s=low_s + (limit - low_s) * inside)
        low_s, n_below = limit, n
    return Quantile(value_s=low_s, is_more=True) if len(limits) > 1 else None
