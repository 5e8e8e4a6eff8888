"""Charts of a run: from memory as far as that goes back, from the ledger's rows before.

Owns which range is drawn, and where its buckets begin: they stand still while time goes on, so that
only the last ones change. What had to be read of the ledger stands for a minute, a chart made of it
for some seconds: many who look at the same one cost one read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from app.clock import Clock, from_ms
from app.core.series import (
    HOUR_S,
    Chart,
    Piece,
    buckets,
    gauge_pieces,
    held,
    pieces,
    stretches,
)
from app.core.states import RunState
from app.core.types import PartitionId, RunId
from app.errors import LedgerError
from app.figures import RunFigures
from app.ledger import snapshots
from app.ledger.db import Ledger
from app.recorder.history import COARSE_STEP_S, History
from app.recorder.rows import Moment, read_rows
from app.settings import Settings

_ENDED = (RunState.STOPPED, RunState.FINISHED)
_FRESH_S, _ROWS_FRESH_S = 5.0, 60.0
_MOST_KEPT = 64
_AWAY_S = 10.0  # a single poll that was late is no absence
# rows are so far apart at most: what reaches into a range begins before it
_REACH_S = 1_500.0
_Key = tuple[RunId, float | None, int, PartitionId | None]
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    begin_s: float
    end_s: float


class Charts:
    """See the module. Called from any thread."""

    def __init__(self, ledger: Ledger, settings: Settings, clock: Clock) -> None:
        self._ledger = ledger
        self._step_s = max(settings.snapshot_s, COARSE_STEP_S)
        self._clock = clock
        self._drawn: dict[_Key, tuple[float, Chart]] = {}
        self._rows: dict[tuple[RunId, float | None], tuple[float, list[Moment]]] = {}
        self._lock = Lock()

    def draw(
        self,
        figures: RunFigures,
        history: History | None,
        span_s: float | None,
        n_buckets: int,
        partition_id: PartitionId | None = None,
    ) -> Chart:
        """Return the speeds of the last `span_s` seconds, None: since the run was created."""
        place = self._range(figures, span_s, n_buckets)
        if history is not None and place.begin_s >= self._clock.now().timestamp() - HOUR_S:
            return self._chart(history.moments(), place, n_buckets, partition_id)
        key = (figures.run_id, span_s, n_buckets, partition_id)
        with self._lock:
            drawn = self._drawn.get(key)
            if drawn is not None and self._clock.monotonic() - drawn[0] <= _FRESH_S:
                return drawn[1]
            moments = self._moments(figures, history, span_s, place)
            chart = self._chart(moments, place, n_buckets, partition_id)
            _remember(self._drawn, key, (self._clock.monotonic(), chart))
        return chart

    def _range(self, figures: RunFigures, span_s: float | None, n_buckets: int) -> _Range:
        now_s = self._clock.now().timestamp()
        is_ended = figures.state in _ENDED
        end_s = min(now_s, figures.state_since.timestamp()) if is_ended else now_s
        if span_s is None:
            begin = figures.created_at or figures.state_since
            return _Range(begin_s=begin.timestamp(), end_s=end_s)
        if not is_ended:
            width_s = span_s / max(1, n_buckets)
            end_s = (now_s // width_s + 1) * width_s
        return _Range(begin_s=end_s - span_s, end_s=end_s)

    def _moments(
        self, figures: RunFigures, history: History | None, span_s: float | None, place: _Range
    ) -> list[Moment]:
        """Return what the ledger holds of the range, read once a minute, then what is in memory."""
        recent = history.moments() if history is not None else []
        key, now_s = (figures.run_id, span_s), self._clock.monotonic()
        read_at_s, older = self._rows.get(key, (float("-inf"), []))
        if now_s - read_at_s > _ROWS_FRESH_S:
            first_s = recent[0].at_s if recent else float("inf")
            stored = [each for each in self._stored(figures, place) if each.at_s < first_s]
            older = [*stored, *recent]
            _remember(self._rows, key, (now_s, older))
        begin_s = recent[0].at_s if recent else float("inf")
        return [each for each in older if each.at_s < begin_s] + recent

    def _stored(self, figures: RunFigures, place: _Range) -> list[Moment]:
        begin_ms = int((place.begin_s - _REACH_S) * 1000)
        end_ms = int((place.end_s + self._step_s) * 1000)
        try:
            rows = snapshots.between(self._ledger, figures.run_id, begin_ms, end_ms)
        except LedgerError:
            return []  # what is in memory is true all the same
        return read_rows(rows)

    def _chart(
        self,
        moments: Sequence[Moment],
        place: _Range,
        n_buckets: int,
        partition_id: PartitionId | None,
    ) -> Chart:
        def showed(values: Sequence[float | None]) -> list[Piece]:
            return gauge_pieces(marks, values, now_s, self._step_s)

        now_s = self._clock.now().timestamp()
        marks = [each.mark for each in moments]
        away = showed([1.0 if each.is_away else None for each in moments])
        wanted = showed([_wanted(each, partition_id) for each in moments])
        told = [each.server_tokens_per_s if partition_id is None else None for each in moments]
        if partition_id is not None:
            of_it = [mark for each in moments if (mark := each.mark_of(partition_id)) is not None]
            own = pieces(of_it, now_s, self._step_s)
        else:
            own = pieces(marks, now_s, self._step_s)
        begin_s, end_s = place.begin_s, place.end_s
        return Chart(
            begin=from_ms(int(begin_s * 1000)),
            end=from_ms(int(end_s * 1000)),
            own_tokens_per_s=buckets(own, begin_s, end_s, n_buckets),
            server_tokens_per_s=buckets(showed(told), begin_s, end_s, n_buckets),
            concurrency_requests=held(wanted, begin_s, end_s, n_buckets),
            aways=tuple(
                (from_ms(int(first_s * 1000)), from_ms(int(last_s * 1000)))
                for first_s, last_s in stretches(away, begin_s, end_s)
                if last_s - first_s >= _AWAY_S
            ),
        )


def _wanted(moment: Moment, partition_id: PartitionId | None) -> float | None:
    """Return the concurrency that was wanted of a partition, or of all; None if not known."""
    if partition_id is not None:
        return moment.concurrency.get(partition_id)
    return sum(moment.concurrency.values()) if moment.concurrency else None


def _remember(kept: dict[K, V], key: K, value: V) -> None:
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = value
