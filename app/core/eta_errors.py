"""How wrong the shown ends were: each shown time left against what it turned out to be.

Owns the arithmetic of hindsight: active time apart from pauses and from time without a service,
errors at shares of the work, how often the range held the truth. Pure; fed row by row, it keeps a
few numbers of each. Moments are seconds since 1970. Invariants: what was shown is judged only by
the end of its own stretch, once that is known; time in which nothing was to run is no error of an
estimate (prg-05).
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isnan, nan

MARKS = (0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90)
_EARLY, _SETTLED = 0.05, 0.25
# beyond this share of the work, what is left is a matter of seconds and its ratio is chance
_LAST = 0.95
# shown times are stored in whole seconds
_ROUNDING_S = 1.0
_MAX_CURVE_POINTS = 400

Span = tuple[float, float]
Left = tuple[float, float, float]


class Idle:
    """When nothing was to run. Spans may overlap and come in any order."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        for begin_s, end_s in sorted(span for span in spans if span[0] < span[1]):
            if self._ends and begin_s <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end_s)
            else:
                self._begins.append(begin_s)
                self._ends.append(end_s)
        widths = (end - begin for begin, end in zip(self._begins, self._ends, strict=True))
        self._before = [0.0, *accumulate(widths)]

    def _until(self, at_s: float) -> float:
        """Return how much of the time before a moment was idle."""
        index = bisect_right(self._begins, at_s)
        if index == 0:
            return 0.0
        return self._before[index] - max(0.0, self._ends[index - 1] - at_s)

    def within(self, begin_s: float, end_s: float) -> float:
        """Return how much of a stretch was idle.

        >>> Idle([(10, 20), (15, 30), (40, 50)]).within(12, 45)
        23.0
        """
        return float(max(0.0, self._until(end_s) - self._until(begin_s)))

    def active_s(self, begin_s: float, end_s: float) -> float:
        """Return how much of a stretch was not idle."""
        return max(0.0, end_s - begin_s - self.within(begin_s, end_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """From an opening to the end that came, and how many tokens there were in all by then."""

    begin_s: float
    end_s: float
    end_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row held against its end. `share` is of its stretch's work; no error: nothing shown."""

    received: int
    share: float
    error: float | None
    weight_s: float
    is_held: bool


class Shown:
    """What was shown of one partition, or of the run, row by row as time went on."""

    def __init__(self) -> None:
        self._at_s = array("d")
        self._received = array("q")
        self._left = (array("d"), array("d"), array("d"))

    def add(self, at_s: float, received_tokens: int, left: Left | None) -> None:
        """Take a row; rows that do not rise in time are left out."""
        if self._at_s and at_s <= self._at_s[-1]:
            return
        self._at_s.append(at_s)
        self._received.append(received_tokens)
        for values, value in zip(self._left, left or (nan, nan, nan), strict=True):
            values.append(value)

    def __len__(self) -> int:
        return len(self._at_s)

    def tokens_at(self, at_s: float) -> int:
        """Return what had been received by the last row until then; 0 before the first."""
        index = bisect_right(self._at_s, at_s)
        return self._received[index - 1] if index else 0

    def over_since_s(self, begin_s: float, until_s: float) -> float | None:
        """Return from which row on nothing was left and nothing came, until the stretch's last row.

        None: something was left in its last row, or there is none. A time left of nothing that was
        shown too soon is no end: tokens came after it.
        """
        since_s = None
        for i in reversed(self._rows(begin_s, until_s)):
            is_last = self._received[i] == self.tokens_at(until_s)
            if not is_last or any(values[i] != 0.0 for values in self._left):
                break
            since_s = self._at_s[i]
        return since_s

    def judge(self, stretches: Sequence[Stretch], idle: Idle) -> "Verdict":
        """Hold what was shown against the end of its stretch; stretches follow each other.

        Marks are shares of the work of all stretches, medians count within each one's own work.
        """
        rows: list[_Row] = []
        begin_tokens, longest_s, longest = 0, 0.0, range(0)
        end_s = 0.0
        for each in stretches:
            indexes = self._rows(each.begin_s, each.end_s)
            rows += self._judged(indexes, each, begin_tokens, idle)
            begin_tokens = each.end_tokens
            active_s = idle.active_s(self._at_s[indexes[0]], each.end_s) if indexes else 0.0
            if active_s > longest_s:
                longest_s, longest, end_s = active_s, indexes, each.end_s
        known = [row for row in rows if row.error is not None]
        work = [row.received / begin_tokens if begin_tokens > 0 else 0.0 for row in rows]
        weighed = sum(row.weight_s for row in known)
        return Verdict(
            marks=tuple(Mark(share=share, error_ratio=_at(share, work, rows)) for share in MARKS),
            median_from_5=_median(known, _EARLY),
            median_from_25=_median(known, _SETTLED),
            held_ratio=sum(row.weight_s for row in known if row.is_held) / weighed
            if weighed > 0
            else None,
            n_shown=len(known),
            n_ends=len(stretches),
            curve=tuple(self._curve(longest, end_s, idle)),
        )

    def _rows(self, begin_s: float, end_s: float) -> range:
        return range(bisect_left(self._at_s, begin_s), bisect_left(self._at_s, end_s))

    def _judged(
        self, indexes: range, stretch: Stretch, begin_tokens: int, idle: Idle
    ) -> Iterable[_Row]:
        gained = stretch.end_tokens - begin_tokens
        # a row weighs the time that it stood for: rows are thinned with age, time is not
        moments = [*self._at_s[indexes.start : indexes.stop], stretch.end_s]
        for i, (at_s, next_s) in zip(indexes, pairwise(moments), strict=True):
            truth_s = idle.active_s(at_s, stretch.end_s)
            is_known = not isnan(self._left[1][i]) and truth_s > 0
            yield _Row(
                received=self._received[i],
                share=(self._received[i] - begin_tokens) / gained if gained > 0 else 0.0,
                error=self._left[1][i] / truth_s - 1 if is_known else None,
                weight_s=idle.active_s(at_s, next_s),
                is_held=self._holds(i, truth_s),
            )

    def _holds(self, i: int, truth_s: float) -> bool:
        low, high = self._left[0][i] - _ROUNDING_S, self._left[2][i] + _ROUNDING_S
        return low <= truth_s <= high

    def _curve(self, indexes: range, end_s: float, idle: Idle) -> Iterable["CurvePoint"]:
        whole_s = idle.active_s(self._at_s[indexes[0]], end_s) if indexes else 0.0
        step = max(1, len(indexes) // _MAX_CURVE_POINTS)
        for i in indexes[::step]:
            truth_s = idle.active_s(self._at_s[i], end_s)
            low, mid, high = (values[i] for values in self._left)
            left = None if isnan(mid) else (low, mid, high)
            yield CurvePoint(active_s=whole_s - truth_s, truth_s=truth_s, left=left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The error at a share of the work; None: nothing was shown there. +0.1 is 10 % too long."""

    share: float
    error_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What was shown after so much active time, and what was really left then."""

    active_s: float
    truth_s: float
    left: Left | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How right the shown ends were.

    Medians are of the error's size, from a share of a stretch's work on until 95 % of it;
    `held_ratio` is the share of the active time in which the range that was shown held the truth.
    None: no end was shown. `n_ends` are the ends that came, `curve` is of the longest stretch.
    """

    marks: tuple[Mark, ...]
    median_from_5: float | None
    median_from_25: float | None
    held_ratio: float | None
    n_shown: int
    n_ends: int
    curve: tuple[CurvePoint, ...]


def _at(share: float, work: Sequence[float], rows: Sequence[_Row]) -> float | None:
    """Return the error of what stood at a share of the work; None if nothing was shown there."""
    first = next((i for i, done in enumerate(work) if done >= share), None)
    return None if first is None else rows[first].error


def _median(known: Iterable[_Row], from_share: float) -> float | None:
    sizes = sorted(
        abs(row.error)
        for row in known
        if row.error is not None and from_share <= row.share <= _LAST
    )
    if not sizes:
        return None
    half = len(sizes) // 2
    return sizes[half] if len(sizes) % 2 else (sizes[half - 1] + sizes[half]) / 2
