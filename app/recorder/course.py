"""What the activity says of a run's course: when nothing was to run, and which conditions held.

Owns the stretches from an opening to the end before the next, and how entries are read for that,
the oldest first, in batches. What moves a run or a partition is known by the words that the
ledger's own functions write.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from app.core.conditions import ConditionKind
from app.core.eta_errors import Span
from app.core.messages import OVER
from app.core.states import PartitionState, RunState
from app.core.types import PartitionId, RunId
from app.ledger import activity
from app.ledger.activity import Activity
from app.ledger.db import Ledger
from app.recorder.chronicle import WHO

_BATCH = 500
_RUN_MOVES = {
    "pause": RunState.PAUSED,
    "run paused": RunState.PAUSED,
    "resume": RunState.RUNNING,
    "run resumed": RunState.RUNNING,
    "stop": RunState.STOPPING,
    "workers gone": RunState.STOPPED,
}
# what may give a partition work again that had ended
_RAISES = frozenset({"goal", "budget", "max_new_tokens", "retry"})
_KINDS = frozenset(str(kind) for kind in ConditionKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A condition and when it held; `end` is None while it does."""

    kind: str
    partition: str
    begin: datetime
    end: datetime | None
    sentence: str


@dataclass
class Course:
    """See the module. `state` and what still rests or holds are as of the last entry.

    `ended` are the stretches with an end that was followed by an opening, `opened_s` begins the
    last one. `raised`: when more was asked of a partition; under None, of all.
    """

    state: RunState = RunState.RUNNING
    since_s: float = 0.0
    opened_s: float = 0.0
    ended: list[Span] = field(default_factory=list)
    raised: dict[PartitionId | None, list[float]] = field(default_factory=dict)
    paused: list[Span] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    by_partition: dict[PartitionId, list[Span]] = field(default_factory=dict)
    _resting: dict[PartitionId, float] = field(default_factory=dict)
    _open: dict[tuple[str, PartitionId | None], Activity] = field(default_factory=dict)

    def follow(self, ledger: Ledger, run_id: RunId, names: dict[PartitionId, str]) -> None:
        """Take all entries of a run. LedgerError."""
        for entry in _entries(ledger, run_id):
            self.take(entry, names)

    def take(self, entry: Activity, names: dict[PartitionId, str]) -> None:
        at_s = entry.at.timestamp()
        moved = _run_state_after(entry)
        if moved is not None:
            self._move(moved, at_s)
        elif entry.event == "state" and entry.partition_id is not None:
            self._rest(entry, entry.partition_id, at_s)
        elif entry.event in _RAISES:
            self.raised.setdefault(entry.partition_id, []).append(at_s)
        elif entry.who == WHO and entry.event in _KINDS:
            self._condition(entry, names)

    def _move(self, moved: RunState, at_s: float) -> None:
        if self.state is RunState.FINISHED:
            if moved is RunState.RUNNING:
                self.ended.append((self.opened_s, self.since_s))
                self.opened_s = at_s
        elif self.state is not RunState.RUNNING:
            self.paused.append((self.since_s, at_s))
        self.state, self.since_s = moved, at_s

    @property
    def between(self) -> list[Span]:
        """Return when the run was finished, until it was opened again."""
        openings = [*(begin for begin, _ in self.ended[1:]), self.opened_s]
        return [(end, opened) for (_, end), opened in zip(self.ended, openings, strict=False)]

    def _rest(self, entry: Activity, partition_id: PartitionId, at_s: float) -> None:
        begin_s = self._resting.pop(partition_id, None)
        if begin_s is not None:
            self.by_partition.setdefault(partition_id, []).append((begin_s, at_s))
        if _new_state(entry) == PartitionState.PAUSED:
            self._resting[partition_id] = at_s

    def _condition(self, entry: Activity, names: dict[PartitionId, str]) -> None:
        key = (entry.event, entry.partition_id)
        is_over = entry.detail.startswith(OVER)
        begun = self._open.pop(key, None)
        if begun is not None:
            self.held.append(_held(begun, entry.at if is_over else None, names))
        if not is_over:
            self._open[key] = entry

    def close(self, end_s: float, names: dict[PartitionId, str]) -> None:
        """Let what still holds hold until the end."""
        if self.state not in {RunState.RUNNING, RunState.FINISHED}:
            self.paused.append((self.since_s, max(end_s, self.since_s)))
        for partition_id, begin_s in self._resting.items():
            spans = self.by_partition.setdefault(partition_id, [])
            spans.append((begin_s, max(end_s, begin_s)))
        self.held += [_held(each, None, names) for each in self._open.values()]
        self.held.sort(key=lambda each: each.begin)


def _entries(ledger: Ledger, run_id: RunId) -> Iterator[Activity]:
    after_id = 0
    while listed := activity.onward(ledger, run_id, after_id, _BATCH):
        yield from listed
        after_id = listed[-1].id


def _run_state_after(entry: Activity) -> RunState | None:
    """Return the state that an entry moves the run to, None if it moves no run."""
    if entry.event in _RUN_MOVES:
        return _RUN_MOVES[entry.event]
    if entry.event == "state" and entry.partition_id is None and entry.detail.startswith("run: "):
        word = _new_state(entry)
        return RunState(word) if word in set(RunState) else None
    return None


def _new_state(entry: Activity) -> str:
    return next(iter(entry.detail.partition(" -> ")[2].split()), "")


def _held(begun: Activity, end: datetime | None, names: dict[PartitionId, str]) -> Held:
    return Held(
        kind=begun.event,
        partition=names.get(begun.partition_id, "") if begun.partition_id is not None else "",
        begin=begun.at,
        end=end,
        sentence=begun.detail,
    )
