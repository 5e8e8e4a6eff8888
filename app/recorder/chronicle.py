"""The begin and end of each condition as entries of the activity, once each.

Owns what has been told and what still waits to be written: while the ledger takes nothing, entries
wait here with their own time. Across a restart the ledger itself says what was told. Invariants: of
one kind, run and partition, begin and end take turns; nothing is left open of a run that has ended.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.core.conditions import Condition, ConditionKind, Key, by_key
from app.core.format import one_line, span_of
from app.core.messages import OVER
from app.core.states import LIVE_RUN_STATES, RunState
from app.core.types import PartitionId, RunId
from app.core.views import RunView
from app.figures import RunFigures
from app.ledger import activity, runs
from app.ledger.activity import Activity, Deed
from app.ledger.db import Ledger

WHO = "system"
_EVENTS = tuple(str(kind) for kind in ConditionKind)
# after a start, workers need so long to find out that what held before still holds
_SETTLE_S = 30.0
_MOST_WAITING = 1_000
Entry = tuple[Deed, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    since: datetime
    settles_at_s: float = 0.0


class Chronicle:
    """See the module. All methods but `waiting` and `written` are called by the looking thread."""

    def __init__(self) -> None:
        self._has_begun = False
        self._open: dict[RunId, dict[Key, _Open]] = {}
        self._waiting: list[Entry] = []

    def knows(self, run_id: RunId) -> bool:
        return run_id in self._open

    def begin(self, ledger: Ledger, listed: Iterable[RunView]) -> None:
        """End, at the first look, what an earlier service left open of runs that have ended.

        Nobody looks at them any more. LedgerError: it is done at the next call.
        """
        if self._has_begun:
            return
        ended = [run for run in listed if run.state not in LIVE_RUN_STATES]
        for run, told in [(run, _told_of(ledger, run.id)) for run in ended]:
            for entry in told:
                if not entry.detail.startswith(OVER):
                    detail = _over_with(entry.at, run.state_since, run.state)
                    self._add(run.id, entry.event, entry.partition_id, detail, run.state_since)
        self._has_begun = True

    def take_up(self, ledger: Ledger, run_id: RunId, at_s: float) -> tuple[Condition, ...]:
        """Begin with the newest entry that the ledger holds of each kind and partition.

        Return the conditions that were told of and had not ended. LedgerError.
        """
        told = _told_of(ledger, run_id)
        names = {each.id: each.name for each in runs.partitions_of(ledger, run_id)}
        held = [
            Condition(
                kind=ConditionKind(entry.event),
                since=entry.at,
                sentence=entry.detail,
                partition=_name_of(entry, names),
            )
            for entry in told
            if not entry.detail.startswith(OVER)
        ]
        self._open[run_id] = {
            one.key: _Open(since=one.since, settles_at_s=at_s + _SETTLE_S) for one in held
        }
        return tuple(held)

    def see(self, figures: RunFigures, at_s: float) -> None:
        """Note what has begun and what is over; of a run that has ended, all of it is."""
        opened = self._open.setdefault(figures.run_id, {})
        if figures.state not in LIVE_RUN_STATES:
            for key, one in opened.items():
                self._tell(figures, key, _over_with(one.since, figures.at, figures.state))
            opened.clear()
            return
        holding = by_key(figures.conditions)
        for key, condition in holding.items():
            if key not in opened:
                opened[key] = _Open(since=condition.since)
                self._tell(figures, key, one_line(condition.sentence))
        for key in [key for key in opened if key not in holding]:
            if at_s >= opened[key].settles_at_s:
                since = opened.pop(key).since
                self._tell(figures, key, f"{OVER}{span_of(since, figures.at)}")

    def _tell(self, figures: RunFigures, key: Key, detail: str) -> None:
        kind, name = key
        partition_id = next((one.id for one in figures.partitions if one.name == name), None)
        self._add(figures.run_id, str(kind), partition_id, detail, figures.at)

    def _add(
        self, run_id: RunId, event: str, partition_id: PartitionId | None, detail: str, at: datetime
    ) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            return
        deed = Deed(who=WHO, event=event, detail=detail, run_id=run_id, partition_id=partition_id)
        self._waiting.append((deed, at))

    def waiting(self) -> list[Entry]:
        """Return what is to be written; `written` says that it is."""
        return list(self._waiting)

    def written(self, n: int) -> None:
        del self._waiting[:n]


def _told_of(ledger: Ledger, run_id: RunId) -> list[Activity]:
    return activity.newest_of(ledger, run_id, WHO, _EVENTS)


def _over_with(since: datetime, now: datetime, state: RunState) -> str:
    """Return how a condition is over that nobody watches any more: its run has ended."""
    return f"{OVER}{span_of(since, now)}: the run is {state}"


def _name_of(entry: Activity, names: Mapping[PartitionId, str]) -> str:
    return "" if entry.partition_id is None else names.get(entry.partition_id, "")
