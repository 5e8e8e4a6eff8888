"""Looks at all live runs once a second and keeps what it saw: pages, API and terminal share it.

`look` only reads and is called by one thread; `keep` writes what is due (snapshot rows, conditions
as activity, thinning, the care for the log) and is called by another, so that a slow disk holds no
figure up. Everything else may be called from any thread. Invariant: figures that are at most 2.5 s
old are handed out again; nobody who looks on causes a query for live ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock

from app.clock import Clock, to_ms
from app.core.loads import ServerLoad
from app.core.series import HOUR_S, Chart
from app.core.states import LIVE_RUN_STATES as LIVE
from app.core.types import PartitionId, RunId
from app.core.views import RunView
from app.errors import LedgerError
from app.events import Observer, ServiceTrouble
from app.figures import Beside, RunFigures, Speedometer, collect
from app.ledger import runs, snapshots
from app.ledger.db import Ledger
from app.recorder.charting import Charts
from app.recorder.chronicle import Chronicle
from app.recorder.effects import Effects
from app.recorder.history import History, with_derived
from app.recorder.rows import moment_of, read_rows, row_of
from app.recorder.thinning import Thinning
from app.recorder.watching import LedgerWatch
from app.settings import Settings

FRESH_S = 2.5
_ENDED_FRESH_S = 5.0
# the ledger's own patience is five seconds, in which no page would move
_BUSY_TIMEOUT_MS = 250
_COLLECT_WAIT_S = 1.0
_TOLD_AFTER_S = 3.0  # writers of ours wait for each other too: so short a wait is not told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    figures: RunFigures
    at_s: float


class Recorder:
    """See the module."""

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        clock: Clock,
        observer: Observer,
        loads: Callable[[], Mapping[str, ServerLoad]],
    ) -> None:
        self.seq = 0
        self._ledger = Ledger(ledger.path, busy_timeout_ms=_BUSY_TIMEOUT_MS)
        self._settings = settings
        self._clock = clock
        self._observer = observer
        self._loads = loads
        self._session = to_ms(clock.now())
        self._speed = Speedometer()
        self._watch = LedgerWatch(self._ledger, settings, clock)
        self._chronicle = Chronicle()
        self._thinning = Thinning(self._ledger)
        self._collecting = Lock()
        self._kept: dict[RunId, _Kept] = {}
        self._live: tuple[RunId, ...] = ()
        self._known: tuple[RunId, ...] = ()
        self._histories: dict[RunId, History] = {}
        self._ended: list[RunFigures] = []
        self._effects = Effects(self._ledger, clock, settings.snapshot_s)
        self._charts = Charts(self._ledger, settings, clock)
        self._stored_at_s: float | None = None
        self._distrusted_at_s = float("-inf")
        self._supervised_at: datetime | None = None

    # -- the looking thread -------------------------------------------------------------------

    def look(self) -> None:
        """Collect the figures of every live run. LedgerError: those of the last look stand."""
        self.seq += 1
        listed = runs.list_runs(self._ledger)
        self._speed.look(self._ledger, self._clock.monotonic())
        self._chronicle.begin(self._ledger, listed)
        live = [run for run in listed if run.state in LIVE]
        ended = [run for run in listed if run.id in self._live and run.state not in LIVE]
        for run in live:
            self._take_up(run.id)
        for run in [*live, *ended]:
            figures = self._collect_now(run)
            if run in ended:
                self._ended.append(figures)
                self._histories.pop(run.id, None)
                self._speed.memory(run.id).conditions = ()  # started again, they begin anew
        self._known = tuple(run.id for run in listed)
        self._live = tuple(run.id for run in live)

    def _take_up(self, run_id: RunId) -> None:
        """Go on with what the ledger holds of a run that is seen for the first time."""
        if run_id in self._histories:
            return
        now = self._clock.now()
        begin_ms = to_ms(now - timedelta(seconds=HOUR_S))
        stored = read_rows(snapshots.between(self._ledger, run_id, begin_ms, to_ms(now)))
        newest = snapshots.latest(self._ledger, run_id)
        last = read_rows([newest] if newest else [])
        if not self._chronicle.knows(run_id):
            held = self._chronicle.take_up(self._ledger, run_id, self._clock.monotonic())
            self._speed.memory(run_id).conditions = held
        best = last[0].best_tokens_per_s if last else None
        self._histories[run_id] = History(stored, best, self._settings.snapshot_s)

    def _collect_now(self, run: RunView) -> RunFigures:
        with self._collecting:
            at_s = self._clock.monotonic()
            figures = self._collect(run)
            history = self._histories.get(run.id)
            if history is not None:
                history.add(moment_of(figures, self._session))
                figures = with_derived(figures, history.derived)
            self._kept[run.id] = _Kept(figures=figures, at_s=at_s)
        self._chronicle.see(figures, at_s)
        return figures

    def _collect(self, run: RunView) -> RunFigures:
        beside = Beside(
            loads=self._loads(), ledger=self._watch.facts, supervised_at=self._supervised_at
        )
        return collect(self._ledger, run, self._speed, self._settings, self._clock, beside)

    def keep(self) -> None:
        """Write what is due. LedgerError: it is tried again at the next call, nothing is lost."""
        live = [kept.figures for run_id in self._live if (kept := self._kept.get(run_id))]
        is_late = any(self._speed.memory(each.run_id).unrecorded_s for each in live)
        # what cannot be recorded is tried each time: so it is known why, and when it is over
        is_due = is_late or self._watch.troubled_since is not None or self._is_row_due()
        failed: LedgerError | None = None
        try:
            self._write(live, is_due=is_due)
        except LedgerError as error:
            failed = error
        self._watch.look(is_late=is_late)
        if failed is not None and self._is_worth_telling():
            raise failed

    def _is_row_due(self) -> bool:
        last_s = self._stored_at_s
        return last_s is None or self._clock.monotonic() - last_s >= self._settings.snapshot_s

    def _is_worth_telling(self) -> bool:
        since = self._watch.troubled_since
        return since is None or (self._clock.now() - since).total_seconds() >= _TOLD_AFTER_S

    def _write(self, live: Sequence[RunFigures], *, is_due: bool) -> None:
        ended, entries = list(self._ended), self._chronicle.waiting()
        surplus = self._thinning.next(self._known, to_ms(self._clock.now())) if is_due else None
        figures = [*(live if is_due else []), *ended]
        rows = [row_of(each, self._session) for each in figures]
        if rows or entries or (surplus and surplus.moments_ms):
            self._watch.writing(lambda: snapshots.record(self._ledger, rows, entries, surplus))
        del self._ended[: len(ended)]
        self._chronicle.written(len(entries))
        self._thinning.done()
        if is_due:
            self._stored_at_s = self._clock.monotonic()
            self._effects.tell(tuple(self._histories.items()))

    def figures(self, run_id: RunId) -> RunFigures:
        """Return a run's figures: of the last look if fresh, else as they are now.

        While the ledger cannot be read: the last known ones, with their `at`. NotFoundError if
        there is no such run, LedgerError if nothing is known of it yet.
        """
        kept = self._kept.get(run_id)
        if kept is not None and self._is_fresh(kept):
            return kept.figures
        if not self._collecting.acquire(timeout=_COLLECT_WAIT_S):
            return _last_known(kept, LedgerError(f"ledger {self._ledger.path}: no answer in time"))
        try:
            kept = self._kept.get(run_id)  # somebody may have collected them meanwhile
            if kept is not None and self._is_fresh(kept):
                return kept.figures
            at_s = self._clock.monotonic()
            figures = self._with_history(self._collect(runs.get_run(self._ledger, run_id)))
            self._kept[run_id] = _Kept(figures=figures, at_s=at_s)
        except LedgerError as error:
            return _last_known(kept, error)
        finally:
            self._collecting.release()
        return figures

    def _is_fresh(self, kept: _Kept) -> bool:
        bound_s = FRESH_S if kept.figures.state in LIVE else _ENDED_FRESH_S
        age_s = self._clock.monotonic() - kept.at_s
        return age_s <= bound_s and kept.at_s > self._distrusted_at_s

    def _with_history(self, figures: RunFigures) -> RunFigures:
        """Return the figures with sparks and means; of a run that has ended, the best it was."""
        history = self._histories.get(figures.run_id)
        if history is not None:
            return with_derived(figures, history.derived)
        newest = snapshots.latest(self._ledger, figures.run_id)
        last = read_rows([newest] if newest else [])
        return replace(figures, best_tokens_per_s=last[0].best_tokens_per_s if last else None)

    def live(self) -> tuple[RunFigures, ...]:
        """Return the figures of all live runs as the last look saw them, the newest run first."""
        return tuple(kept.figures for run_id in self._live if (kept := self._kept.get(run_id)))

    def chart(
        self, run_id: RunId, span_s: float | None, n: int, partition_id: PartitionId | None = None
    ) -> Chart:
        """Return the last `span_s` seconds (None: all) in n pieces: of the run, or a partition."""
        history = self._histories.get(run_id)
        return self._charts.draw(self.figures(run_id), history, span_s, n, partition_id)

    def distrust(self) -> None:
        """Hand out nothing that was collected before now: somebody has changed something."""
        self._distrusted_at_s = self._clock.monotonic()

    @property
    def has_news(self) -> bool:
        """Whether a begin or an end waits to be written."""
        return bool(self._chronicle.waiting())

    def supervised(self) -> None:
        """Remember that the supervisor has just looked at everything."""
        self._supervised_at = self._clock.now()

    def close(self) -> None:
        """Write a last row of each live run, as far as the ledger takes it, and let it go."""
        try:
            self.look()
            self._write(self.live(), is_due=True)
        except LedgerError as error:
            self._observer(ServiceTrouble(reason=f"the last figures are not stored: {error}"))
        finally:
            self._ledger.close()


def _last_known(kept: _Kept | None, error: LedgerError) -> RunFigures:
    if kept is None:
        raise error
    return kept.figures
