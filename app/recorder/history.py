"""One run's history in memory: each second of 15 minutes, each few seconds of an hour.

Owns sparks, the mean of the last hour and the best five minutes; they are computed when a mark of
the coarse kind is added and stand until the next. An earlier service's rows come first and are
joined to nothing: the time between two services is a gap. Fed by one thread, read by many.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.core.series import HOUR_S, five_minutes, mean, pieces, spark
from app.core.types import PartitionId
from app.figures import RunFigures
from app.recorder.rows import Moment

FINE_S = 900.0
COARSE_STEP_S = 10.0
_SPARK_S = 1_900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What was computed last. `sparks` by partition."""

    mean_hour_tokens_per_s: float | None = None
    best_tokens_per_s: float | None = None
    sparks: dict[PartitionId, tuple[float | None, ...]] = field(default_factory=dict)


class History:
    """See the module. `stored` are the rows of the last hour, `best` the best so far."""

    def __init__(self, stored: Sequence[Moment], best: float | None, row_s: float) -> None:
        self._coarse = deque(stored)
        self._fine: deque[Moment] = deque()
        self._every_s = min(row_s, COARSE_STEP_S)
        self._step_s = max(row_s, COARSE_STEP_S)
        self._last_coarse_s: float | None = None
        self.derived = Derived(best_tokens_per_s=best)

    def add(self, moment: Moment) -> None:
        """Take the moment of a look; compute anew if a coarse mark is due."""
        now_s = moment.at_s
        self._fine.append(moment)
        while self._fine[0].at_s < now_s - FINE_S:
            self._fine.popleft()
        last_s = self._last_coarse_s
        if last_s is not None and 0 <= now_s - last_s < self._every_s:
            return
        self._last_coarse_s = now_s
        self._coarse.append(moment)
        while self._coarse[0].at_s < now_s - HOUR_S - self._step_s:
            self._coarse.popleft()
        self.derived = self._derive(moment)

    def _derive(self, moment: Moment) -> Derived:
        now_s = moment.at_s
        coarse = list(self._coarse)
        known = pieces([each.mark for each in coarse], now_s, self._step_s)
        candidates = (self.derived.best_tokens_per_s, five_minutes(known, now_s))
        recent = [each for each in coarse if each.at_s >= now_s - _SPARK_S]
        return Derived(
            mean_hour_tokens_per_s=mean(known, now_s - HOUR_S, now_s),
            best_tokens_per_s=max((each for each in candidates if each is not None), default=None),
            sparks={each: self._spark(recent, each, now_s) for each in moment.by_partition},
        )

    def _spark(
        self, recent: Sequence[Moment], partition_id: PartitionId, now_s: float
    ) -> tuple[float | None, ...]:
        marks = [mark for each in recent if (mark := each.mark_of(partition_id)) is not None]
        return spark(pieces(marks, now_s, self._step_s), now_s)

    def moments(self) -> list[Moment]:
        """Return all that is in memory, the oldest first."""
        fine = list(self._fine)
        begin_s = fine[0].at_s if fine else float("inf")
        return [each for each in tuple(self._coarse) if each.at_s < begin_s] + fine


def with_derived(figures: RunFigures, derived: Derived) -> RunFigures:
    """Return the figures with what the history adds to them."""
    return replace(
        figures,
        mean_hour_tokens_per_s=derived.mean_hour_tokens_per_s,
        best_tokens_per_s=derived.best_tokens_per_s,
        partitions=tuple(
            replace(each, spark_tokens_per_s=derived.sparks.get(each.id, ()))
            for each in figures.partitions
        ),
    )
