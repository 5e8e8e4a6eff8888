"""What happened in the range of a chart, as a few numbered marks on it.

Owns which entries of the activity are worth a mark, how two of them that belong together (a begin
and its end, presses of one button) become one, and which are kept when there are many: the gravest,
then the newest. Pure. Invariant: a mark stands where something happened, and says it as the
activity does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.core import format as words
from app.core.conditions import CALM_KINDS, ConditionKind
from app.core.messages import OVER
from app.core.types import PartitionId
from app.ledger.activity import Activity
from app.poller.happening import BACK, CHANGED, LOST, RESTARTED

MOST_MARKS = 9
_SYSTEM = "system"
_TOGETHER = timedelta(minutes=5)
_MAX_CHARS = 110
_ARROW = " -> "
# a server that is lost says the same as this, with its address
_CONDITIONS = frozenset(map(str, ConditionKind)) - {ConditionKind.WAITING_FOR_SERVER}
_CALM = frozenset(map(str, CALM_KINDS))
_CHANGES = frozenset(
    {"concurrency", "budget", "goal", "deadline", "max_new_tokens", "state", "retry", "extend"}
)
_MOVES = {
    "pause": "run paused",
    "resume": "run resumed",
    "stop": "run told to stop",
    "run paused": "run paused",
    "run resumed": "run resumed",
    "changes accepted": "changes accepted",
    "partitions added": "partitions added",
}
EVENTS = tuple(sorted({*_CONDITIONS, *_CHANGES, *_MOVES, LOST, BACK, CHANGED, RESTARTED}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One mark. `entry_id` is that of its entry in the activity; `rank` 0 for what is grave."""

    entry_id: int
    at: datetime
    says: str
    rank: int


def marks(
    entries: Iterable[Activity],
    names: Mapping[PartitionId, str],
    partition_id: PartitionId | None = None,
) -> tuple[Mark, ...]:
    """Return at most nine marks in the order of time; entries are in the order in which they came.

    With `partition_id`, without what happened to other partitions only.
    """
    found: list[Mark] = []
    of_it = [each for each in entries if partition_id in (None, each.partition_id or partition_id)]
    found += _conditions([each for each in of_it if _is_condition(each)], names)
    found += _servers([each for each in of_it if each.event in (LOST, BACK)])
    found += _changes([each for each in of_it if _is_change(each)], names)
    kept = sorted(found, key=lambda mark: (mark.rank, -mark.at.timestamp()))[:MOST_MARKS]
    return tuple(sorted(kept, key=lambda mark: (mark.at, mark.entry_id)))


def _is_condition(entry: Activity) -> bool:
    return entry.who == _SYSTEM and entry.event in _CONDITIONS


def _is_change(entry: Activity) -> bool:
    return not _is_condition(entry) and entry.event not in (LOST, BACK)


def _conditions(entries: Sequence[Activity], names: Mapping[PartitionId, str]) -> Iterable[Mark]:
    open_ones: dict[tuple[str, PartitionId | None], Activity] = {}
    for entry in entries:
        begun = open_ones.pop((entry.event, entry.partition_id), None)
        if not entry.detail.startswith(OVER):
            open_ones[entry.event, entry.partition_id] = entry
            continue
        lasted = entry.detail.removeprefix(OVER).partition(":")[0]
        if entry.event in _CALM:
            if begun is not None:
                yield _condition(begun, names, entry.event)
        elif begun is None:
            yield _condition(entry, names, f"no longer {entry.event}, after {lasted}")
        else:
            yield _condition(begun, names, f"{entry.event} for {lasted}")
    for entry in open_ones.values():
        is_calm = entry.event in _CALM  # asked for: nobody waits for its end
        yield _condition(entry, names, entry.event if is_calm else f"{entry.event}, not over yet")


def _condition(entry: Activity, names: Mapping[PartitionId, str], says: str) -> Mark:
    rank = 2 if entry.event in _CALM else 1 if entry.event == ConditionKind.SLOW else 0
    return _mark(entry, f"{_where(entry, names)}{says}", rank)


def _servers(entries: Sequence[Activity]) -> Iterable[Mark]:
    """Join the loss of a server and its return; a detail begins with the server's address."""
    lost: dict[str, Activity] = {}
    for entry in entries:
        url, _, said = entry.detail.partition(": ")
        begun = lost.pop(url, None)
        if entry.event == LOST:
            lost[url] = entry
        else:
            yield _mark(begun or entry, f"server {said}" if begun else f"server back, {said}", 0)
    for entry in lost.values():
        yield _mark(entry, "server away, not back yet", 0)


def _changes(entries: Sequence[Activity], names: Mapping[PartitionId, str]) -> Iterable[Mark]:
    """Give each change; several of one thing by one person, soon after each other, are one."""
    last: dict[tuple[str, str, PartitionId | None], tuple[Activity, str]] = {}
    for entry in entries:
        key = (entry.who, entry.event, entry.partition_id)
        before = last.get(key)
        old = _old(entry.detail)
        if before is not None:
            if entry.at - before[0].at <= _TOGETHER and entry.event in _CHANGES:
                old = before[1]
            elif not _is_undone(*before):
                yield _change(*before, names)
        last[key] = (entry, old)
    for entry, old in last.values():
        if not _is_undone(entry, old):
            yield _change(entry, old, names)


def _is_undone(entry: Activity, old: str) -> bool:
    """Return whether what was changed is what it was before."""
    return _ARROW in entry.detail and old == entry.detail.partition(_ARROW)[2]


def _old(detail: str) -> str:
    return detail.partition(": ")[2].partition(_ARROW)[0]


def _change(entry: Activity, old: str, names: Mapping[PartitionId, str]) -> Mark:
    if entry.event in _MOVES:
        said = _MOVES[entry.event]
    elif _ARROW in entry.detail:
        target = entry.detail.partition(": ")[0]
        what = "" if entry.event == "state" else f"{entry.event} "
        said = f"{target}: {what}{old} → {entry.detail.partition(_ARROW)[2]}"
    else:
        said = f"{_where(entry, names)}{entry.event} {entry.detail}".rstrip()
    by = "" if entry.who == _SYSTEM else f", by {entry.who}"
    rank = 1 if entry.event in (CHANGED, RESTARTED) else 2
    return _mark(entry, f"{_cut(said)}{by}", rank)


def _where(entry: Activity, names: Mapping[PartitionId, str]) -> str:
    name = "" if entry.partition_id is None else names.get(entry.partition_id, "")
    return f"{name}: " if name else ""


def _mark(entry: Activity, says: str, rank: int) -> Mark:
    return Mark(entry_id=entry.id, at=entry.at, says=_cut(says), rank=rank)


def _cut(said: str) -> str:
    flat = words.one_line(said)
    return flat if len(flat) <= _MAX_CHARS else f"{flat[: _MAX_CHARS - 1]}…"
