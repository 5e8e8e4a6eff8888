"""How the last outcomes of a partition ended, from its counters as they stood at each look.

Owns the walk back: the mark at which N fewer had ended, and what came since. No sample is read.
Invariants: where fewer than N have ended under this service, the counters of all time are taken; a
counter that has fallen (retry, extend, a line that was lost) begins the marks anew. Answers that
the server made from another prompt are known of this service's time only.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from app.core.conditions_of_outcomes import Outcomes, Share
from app.core.thresholds import RunThresholds
from app.core.types import Counts, PartitionId
from app.figures.best_speed import BestSpeed


class Mark(NamedTuple):
    """What had ended at a moment. `answers` are kept ones and charged attempts of this service."""

    at_s: float
    counts: Counts
    answers: int
    mismatched: int

    @property
    def n_ended(self) -> int:
        return self.counts.kept + self.counts.failed


_NOTHING = Mark(0.0, Counts(), 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """Attempts charged to samples since an earlier look, and how many of them for their prompt."""

    n: int = 0
    n_mismatched: int = 0


class OutcomeTrack:
    """See the module. One partition; fed at each look with rising times."""

    def __init__(self) -> None:
        self._marks: deque[Mark] = deque()

    def add(self, at_s: float, counts: Counts, charged: Charged, keep_n: int) -> None:
        """Take the counters; what lies further back than the last `keep_n` is forgotten."""
        marks = self._marks
        if marks and _has_fallen(marks[-1].counts, counts):
            marks.clear()
        if not marks:
            marks.append(Mark(at_s, counts, 0, 0))
            return
        last = marks[-1]
        answers = last.answers + counts.kept - last.counts.kept + charged.n
        mark = Mark(at_s, counts, answers, last.mismatched + charged.n_mismatched)
        if (mark.n_ended, mark.answers) == (last.n_ended, last.answers):
            return
        marks.append(mark)
        while len(marks) > 2 and _is_past(marks[1], mark, keep_n):  # noqa: PLR2004 - base and now
            marks.popleft()

    def seen(self, limits: RunThresholds, active_at_s: float) -> Outcomes:
        """Return how the last ones ended; `active_at_s`: when the partition was last set going."""
        if not self._marks:
            return Outcomes()
        since = self._since(active_at_s)
        return Outcomes(
            failed=self._share("failed", limits.failing_window),
            truncated=self._share("truncated", limits.truncated_window),
            suspect=self._share("suspect", limits.suspect_window),
            empty=self._share("empty", limits.empty_window),
            mismatched=self._mismatched(limits.mismatch_window),
            n_ended_since=self._marks[-1].n_ended - since.n_ended,
            n_answers_since=self._marks[-1].answers - since.answers,
        )

    def _since(self, active_at_s: float) -> Mark:
        before = [mark for mark in self._marks if mark.at_s <= active_at_s]
        return before[-1] if before else self._marks[0]

    def _share(self, state: str, window: int) -> Share:
        newest = self._marks[-1]
        far = newest.n_ended - window
        base = next((one for one in reversed(self._marks) if one.n_ended <= far), _NOTHING)
        n_bad = getattr(newest.counts, state) - getattr(base.counts, state)
        return Share(n=newest.n_ended - base.n_ended, n_bad=n_bad)

    def _mismatched(self, window: int) -> Share:
        newest, first = self._marks[-1], self._marks[0]
        far = newest.answers - window
        base = next((one for one in reversed(self._marks) if one.answers <= far), first)
        return Share(n=newest.answers - base.answers, n_bad=newest.mismatched - base.mismatched)


def _has_fallen(old: Counts, new: Counts) -> bool:
    return (
        new.ok < old.ok
        or new.truncated < old.truncated
        or new.empty < old.empty
        or new.suspect < old.suspect
        or new.failed < old.failed
    )


def _is_past(mark: Mark, newest: Mark, keep_n: int) -> bool:
    return mark.n_ended <= newest.n_ended - keep_n and mark.answers <= newest.answers - keep_n


def longest_window(limits: RunThresholds) -> int:
    return max(
        limits.failing_window,
        limits.truncated_window,
        limits.suspect_window,
        limits.empty_window,
        limits.mismatch_window,
    )


@dataclass(slots=True, kw_only=True)
class Recent:
    """What is remembered of a run's partitions.

    `flying_since_s`: since when, without a gap, a partition has had something in flight.
    `attempt_id`: of the last attempt looked at.
    """

    outcomes: dict[PartitionId, OutcomeTrack] = field(default_factory=dict)
    best_speeds: dict[PartitionId, BestSpeed] = field(default_factory=dict)
    flying_since_s: dict[PartitionId, float] = field(default_factory=dict)
    attempt_id: int | None = None
