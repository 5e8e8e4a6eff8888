"""Which stored rows may go now: a slow walk through the rows of each run, again and again.

Owns where the walk stands; what may go is `core/series.py`'s to say. Runs in turn, a bounded batch
each; a run whose walk is through rests for ten minutes. Lives in memory: a new service begins anew,
and finds little to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.series import DAY_S, HOUR_S, Row, kept_every_ms, surplus
from app.core.types import RunId
from app.ledger.db import Ledger
from app.ledger.snapshots import Surplus, between
from app.recorder.rows import Moment, read_rows

_BATCH = 500
_REST_MS = 600_000
_HOUR_MS, _DAY_MS = int(HOUR_S * 1000), int(DAY_S * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    cursor_ms: int = 0
    rests_until_ms: int = 0


class Thinning:
    """See the module. Called from one thread: `next`, and `done` when that has been written."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._walks: dict[RunId, _Walk] = {}
        self._step: tuple[RunId, _Walk] | None = None

    def next(self, run_ids: Sequence[RunId], now_ms: int) -> Surplus | None:
        """Return what of one run may go, None if no run is to be looked at now."""
        self._walks = {run_id: self._walks.get(run_id, _Walk()) for run_id in run_ids}
        due = [one for one, walk in self._walks.items() if walk.rests_until_ms <= now_ms]
        if not due:
            return None
        run_id = min(due, key=lambda one: self._walks[one].rests_until_ms)
        walk = self._walks[run_id]
        stored = between(self._ledger, run_id, walk.cursor_ms, now_ms - _HOUR_MS, _BATCH)
        moments = surplus([_row(moment) for moment in read_rows(stored)], now_ms)
        if len(stored) < _BATCH:
            self._step = (run_id, _at_rest(now_ms))
        else:
            self._step = (run_id, _onward(walk, stored[-1].at_ms, now_ms, is_thin=not moments))
        return Surplus(run_id=run_id, moments_ms=moments)

    def done(self) -> None:
        if self._step is not None:
            run_id, walk = self._step
            self._walks[run_id] = walk
            self._step = None


def _at_rest(now_ms: int) -> _Walk:
    """Return a walk that begins again, in ten minutes, with what will have become a day old."""
    again_ms = max(0, now_ms - _DAY_MS - _REST_MS)
    return _Walk(cursor_ms=again_ms - again_ms % _REST_MS, rests_until_ms=now_ms + _REST_MS)


def _onward(walk: _Walk, last_ms: int, now_ms: int, *, is_thin: bool) -> _Walk:
    """Return the walk from the begin of the last bucket on; it may go on in the next batch."""
    every_ms = kept_every_ms(now_ms - last_ms) or 1
    begin_ms = last_ms - last_ms % every_ms
    is_stuck = begin_ms <= walk.cursor_ms and is_thin
    return replace(walk, cursor_ms=last_ms + 1 if is_stuck else begin_ms)


def _row(moment: Moment) -> Row:
    return Row(round(moment.at_s * 1000), moment.session)
