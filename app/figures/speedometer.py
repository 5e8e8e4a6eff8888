"""What must be remembered between two looks at the runs: speeds, lengths, since when in flight.

Owns the window of 60 s for the speed that is shown, and one `core/pace` per run for estimates,
which begins anew with each control change of the run: what one partition does changes the speed of
all. Lives in the service and survives nothing: a figure of an earlier session is no figure
(prg-01). A pause forgets (prg-05). Thread-safe. Invariant: `look` is fed rising times.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from app.core.conditions import Condition
from app.core.estimate import samples_left
from app.core.lengths import Lengths
from app.core.loads import ServerLoad
from app.core.pace import Beat, Pace, Seen
from app.core.types import PartitionId, RunId
from app.core.views import PartitionView
from app.figures.ends import EndMemory
from app.figures.forecasting import Known
from app.figures.recent import Recent
from app.ledger.db import Ledger
from app.ledger.progress import Pulse, pulses, started_lengths
from app.ledger.samples import recent_lengths

SHOWN_WINDOW_S = 60.0
_MARK_EVERY_S = 0.9
_FEW_ENDED = 100
# reading thousands of lengths takes milliseconds, and one more hardly moves their model
_MANY_ENDED = 1_000
_STEADY_RATIO = 0.1
_FEW_LENGTHS_FRESH_S, _LENGTHS_FRESH_S, _MANY_LENGTHS_FRESH_S = 1.0, 10.0, 30.0


@dataclass(slots=True)
class _Track:
    """Marks (when, tokens received so far) of one working partition, oldest first."""

    marks: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, at_s: float, received_tokens: int) -> None:
        marks = self.marks
        if len(marks) == 1 and marks[0][1] == received_tokens:
            marks.clear()  # nothing has come yet: the window begins with the first tokens
        if not marks or at_s - marks[-1][0] >= _MARK_EVERY_S:
            marks.append((at_s, received_tokens))
        while marks[0][0] < at_s - 2 * SHOWN_WINDOW_S:
            marks.popleft()

    def since(self, begin_s: float) -> list[tuple[float, int]]:
        return [mark for mark in self.marks if mark[0] >= begin_s]


@dataclass(slots=True, kw_only=True)
class RunMemory:
    """What a run's conditions need from the last look."""

    conditions: tuple[Condition, ...] = ()
    recent: Recent = field(default_factory=Recent)
    unrecorded_s: float = 0.0
    unrecorded_at: datetime | None = None
    free_bytes: int | None = None
    free_bytes_at_s: float | None = None


class Speedometer:
    """See the module."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tracks: dict[PartitionId, _Track] = {}
        self._paces: dict[RunId, Pace] = {}
        self._servers: dict[RunId, tuple[float | None, int]] = {}  # share that runs, restarts
        self._known: dict[PartitionId, Known] = {}
        self._in_flight_since_s: dict[RunId, float] = {}
        self._memories: dict[RunId, RunMemory] = {}
        self._ends: dict[RunId, EndMemory] = {}

    def look(self, ledger: Ledger, at_s: float) -> None:
        """Read what has come. Called about once a second; more often does no harm."""
        self.feed(pulses(ledger), at_s)

    def feed(self, beats: Iterable[Pulse], at_s: float) -> None:
        """Take the counters of all live partitions; those that do not work are forgotten."""
        beats = list(beats)
        working = [beat for beat in beats if beat.is_working]
        with self._lock:
            self._tracks = {
                beat.partition_id: self._tracks.get(beat.partition_id) or _Track()
                for beat in working
            }
            for beat in working:
                self._tracks[beat.partition_id].add(at_s, beat.received_tokens)
            flying = {beat.run_id for beat in working if beat.n_in_flight}
            self._in_flight_since_s = {
                run_id: self._in_flight_since_s.get(run_id, at_s) for run_id in flying
            }
            self._remember(working, {beat.run_id for beat in beats}, at_s)

    def _remember(self, working: Sequence[Pulse], live: set[RunId], at_s: float) -> None:
        for run_id in live:
            pace = self._paces.setdefault(run_id, Pace())
            mine = [beat for beat in working if beat.run_id == run_id]
            if not mine:
                pace.forget()
                continue
            controls = tuple((beat.partition_id, beat.own_concurrency) for beat in mine)
            pace.add(
                at_s,
                {b.partition_id: Beat(b.received_tokens, b.n_in_flight) for b in mine},
                (controls, self._servers.get(run_id, (None, 0))[1]),
                self._servers.get(run_id, (None, 0))[0],
            )
        for run_id in self._paces.keys() - live:
            del self._paces[run_id]

    def see_servers(self, run_id: RunId, running_ratio: float | None, n_restarts: int) -> None:
        """Take what the run's servers say: the share that runs of what they have, restarts."""
        with self._lock:
            before = self._servers.get(run_id)
            self._servers[run_id] = (running_ratio, n_restarts)
            if before is not None and before[1] != n_restarts and run_id in self._paces:
                self._paces[run_id].forget_server()

    def seen(self, run_id: RunId, at_s: float) -> Seen:
        """Return what the run's recent past says of how fast it goes."""
        with self._lock:
            pace = self._paces.get(run_id)
            return pace.seen(at_s) if pace else Seen(observed_s=0.0, n_changes=0)

    def shown(self, partition_id: PartitionId) -> float | None:
        """Return tokens a second over the last 60 s; None if nothing was measured yet."""
        with self._lock:
            track = self._tracks.get(partition_id)
            if track is None or not track.marks:
                return None
            window = track.since(track.marks[-1][0] - SHOWN_WINDOW_S)
        passed_s = window[-1][0] - window[0][0]
        return (window[-1][1] - window[0][1]) / passed_s if passed_s > 0 else None

    def in_flight_since_s(self, run_id: RunId) -> float | None:
        with self._lock:
            return self._in_flight_since_s.get(run_id)

    def known(self, ledger: Ledger, partition: PartitionView, at_s: float) -> Known:
        """Return what is known of the partition's lengths, one to thirty seconds old.

        At once anew where max_new_tokens was changed: all lengths are cut there.
        """
        last = self._known.get(partition.id)
        is_same = last is not None and last.lengths.cap_tokens == partition.max_new_tokens
        if last is not None and is_same and at_s - last.at_s < lengths_fresh_s(last, partition):
            return last
        self._known[partition.id] = learn(ledger, partition, at_s)
        return self._known[partition.id]

    def ends_of(self, run_id: RunId) -> EndMemory:
        """Return what was said of the run's end, to be changed in place."""
        return self._ends.setdefault(run_id, EndMemory())

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


def lengths_fresh_s(last: Known, partition: PartitionView) -> float:
    """Return for how long lengths stay as they were learnt.

    Longest while many have ended and as much goes on as then; the ages of the last ones matter.
    """
    n_ended, n_begun = last.lengths.n_finished, len(last.started_tokens)
    running = partition.counts.running
    if n_ended < _FEW_ENDED:
        return _FEW_LENGTHS_FRESH_S
    is_steady = abs(running - n_begun) <= _STEADY_RATIO * n_begun
    n_left = samples_left(partition.counts, partition.goal_samples)
    if n_ended < _MANY_ENDED or not is_steady or n_left <= 2 * running:
        return _LENGTHS_FRESH_S
    return _MANY_LENGTHS_FRESH_S


def running_ratio(loads: Iterable[ServerLoad]) -> float | None:
    """Return the share that runs of what the servers have; None as long as none of them says."""
    running = waiting = 0
    for load in loads:
        if load.away_since is None and load.running_requests is not None:
            running += load.running_requests
            waiting += load.waiting_requests or 0
    return running / (running + waiting) if running else None


def restarts(loads: Iterable[ServerLoad]) -> int:
    return sum(load.n_restarts for load in loads)
