"""What must be remembered between two looks at the runs: speeds, lengths, since when in flight.

Owns the windows: 60 s for the speed that is shown, up to ten minutes since the last control change
for the estimate. Lives in the service and survives nothing: a figure of an earlier session is no
figure (prg-01). A pause forgets (prg-05). Thread-safe. Invariant: `look` is fed rising times.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import sqrt
from statistics import stdev
from threading import Lock

from app.core.conditions import Condition
from app.core.estimate import Speed
from app.core.lengths import Lengths
from app.core.types import PartitionId, RunId
from app.core.views import PartitionView
from app.ledger.db import Ledger
from app.ledger.progress import Pulse, pulses, started_lengths
from app.ledger.samples import recent_lengths

SHOWN_WINDOW_S = 60.0
ESTIMATE_WINDOW_S = 600.0
_MARK_EVERY_S = 0.9
_BUCKET_S = 10.0
_FEW_ENDED = 100
_LENGTHS_FRESH_S = 10.0
_FEW_LENGTHS_FRESH_S = 1.0


@dataclass(slots=True)
class _Track:
    """Marks (when, tokens received so far) of one working partition, oldest first."""

    own_concurrency: int | None
    changed_at_s: float
    marks: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, at_s: float, received_tokens: int) -> None:
        marks = self.marks
        if len(marks) == 1 and marks[0][1] == received_tokens:
            marks.clear()  # nothing has come yet: the window begins with the first tokens
        if not marks or at_s - marks[-1][0] >= _MARK_EVERY_S:
            marks.append((at_s, received_tokens))
        while marks[0][0] < at_s - ESTIMATE_WINDOW_S:
            marks.popleft()

    def since(self, begin_s: float) -> list[tuple[float, int]]:
        return [mark for mark in self.marks if mark[0] >= begin_s]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a partition's lengths: the model, and answers begun and not ended."""

    lengths: Lengths
    started_tokens: tuple[int, ...]
    at_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class RunMemory:
    """What a run's conditions need from the last look."""

    conditions: tuple[Condition, ...] = ()
    free_bytes: int | None = None
    free_bytes_at_s: float | None = None


class Speedometer:
    """See the module."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tracks: dict[PartitionId, _Track] = {}
        self._known: dict[PartitionId, Known] = {}
        self._in_flight_since_s: dict[RunId, float] = {}
        self._memories: dict[RunId, RunMemory] = {}

    def look(self, ledger: Ledger, at_s: float) -> None:
        """Read what has come. Called about once a second; more often does no harm."""
        self.feed(pulses(ledger), at_s)

    def feed(self, beats: Iterable[Pulse], at_s: float) -> None:
        """Take the counters of all live partitions; those that do not work are forgotten."""
        working = [beat for beat in beats if beat.is_working]
        with self._lock:
            tracks = {beat.partition_id: self._track(beat, at_s) for beat in working}
            self._tracks = tracks
            for beat in working:
                tracks[beat.partition_id].add(at_s, beat.received_tokens)
            flying = {beat.run_id for beat in working if beat.n_in_flight}
            self._in_flight_since_s = {
                run_id: self._in_flight_since_s.get(run_id, at_s) for run_id in flying
            }

    def _track(self, beat: Pulse, at_s: float) -> _Track:
        track = self._tracks.get(beat.partition_id)
        if track is None:
            return _Track(own_concurrency=beat.own_concurrency, changed_at_s=at_s)
        if track.own_concurrency != beat.own_concurrency:
            track.own_concurrency = beat.own_concurrency
            track.changed_at_s = at_s
        return track

    def shown(self, partition_id: PartitionId) -> float | None:
        """Return tokens a second over the last 60 s; None if nothing was measured yet."""
        with self._lock:
            track = self._tracks.get(partition_id)
            if track is None or not track.marks:
                return None
            window = track.since(track.marks[-1][0] - SHOWN_WINDOW_S)
        passed_s = window[-1][0] - window[0][0]
        return (window[-1][1] - window[0][1]) / passed_s if passed_s > 0 else None

    def for_estimate(self, partition_id: PartitionId) -> Speed:
        """Return the speed since the last control change; nothing observed is 0 s of it."""
        with self._lock:
            track = self._tracks.get(partition_id)
            window = track.since(track.changed_at_s) if track else []
        passed_s = window[-1][0] - window[0][0] if window else 0.0
        if passed_s <= 0:
            return Speed(tokens_per_s=0.0, observed_s=0.0)
        return Speed(
            tokens_per_s=(window[-1][1] - window[0][1]) / passed_s,
            observed_s=passed_s,
            deviation_tokens_per_s=_deviation(window),
        )

    def in_flight_since_s(self, run_id: RunId) -> float | None:
        with self._lock:
            return self._in_flight_since_s.get(run_id)

    def known(self, ledger: Ledger, partition: PartitionView, at_s: float) -> Known:
        """Return what is known of the partition's lengths, not older than ten seconds."""
        last = self._known.get(partition.id)
        if last is not None:
            few = last.lengths.n_finished < _FEW_ENDED
            if at_s - last.at_s < (_FEW_LENGTHS_FRESH_S if few else _LENGTHS_FRESH_S):
                return last
        self._known[partition.id] = learn(ledger, partition, at_s)
        return self._known[partition.id]

    def memory(self, run_id: RunId) -> RunMemory:
        """Return what was remembered of the run, to be changed in place."""
        return self._memories.setdefault(run_id, RunMemory())


def learn(ledger: Ledger, partition: PartitionView, at_s: float) -> Known:
    """Read the lengths of ended and begun answers, and learn the model from them."""
    started = started_lengths(ledger, partition.id)
    return Known(
        lengths=Lengths.learn(
            finished=recent_lengths(ledger, partition.id),
            running=started,
            cap=partition.max_new_tokens,
        ),
        started_tokens=tuple(started),
        at_s=at_s,
    )


def _deviation(window: list[tuple[float, int]]) -> float:
    """Return how uncertain the mean speed of the window is, from its ten-second pieces."""
    rates: list[float] = []
    begin = window[0]
    for mark in window[1:]:
        if mark[0] - begin[0] >= _BUCKET_S:
            rates.append((mark[1] - begin[1]) / (mark[0] - begin[0]))
            begin = mark
    return stdev(rates) / sqrt(len(rates)) if len(rates) > 1 else 0.0
