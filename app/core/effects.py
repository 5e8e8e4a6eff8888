"""What a change of concurrency brought, seen some minutes later: speed before, speed after.

Owns which changes can be judged (a person's, nothing else changed around it, both sides steady and
measured for long enough) and the sentence. Pure: the entries of the activity and the pieces of the
speed history are handed in; moments are seconds since 1970. Invariant: what cannot be told apart
from another change, or was not measured, is not said.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from app.core.series import Piece, mean, stretches
from app.core.types import PartitionId

AFTER_S = 180.0
# one hand's presses, one after the other, are one change
_BURST_S = 30.0
_BEFORE_S = 180.0
# so long after the change the server still takes up or lets go
_SETTLING_S = 30.0
# what was judged by nobody for so long is not judged any more
_LATEST_S = 600.0
_LEAST_MEASURED_S = 90.0
_LEAST_READINGS = 3
_READING_S = 120.0
_SYSTEM = "system"
_CONCURRENCY, EFFECT = "concurrency", "effect"
_DETAIL = re.compile(r"(?P<name>[^:]+): (?P<old>.+) -> (?P<new>.+)", re.DOTALL)
# entries of the system that are no change of anything
_IDLE = frozenset({EFFECT, "notification"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One entry of the activity, as far as it matters here."""

    id: int
    at_s: float
    who: str
    event: str
    detail: str
    partition_id: PartitionId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one partition's concurrency: from before the first press to after the last."""

    entry_id: int
    partition_id: PartitionId
    name: str
    old: str
    new: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How long a first token took in the two minutes before a moment, as the server tells it."""

    at_s: float
    first_token_s: float


def judged(happenings: Sequence[Happening], now_s: float) -> Change | None:
    """Return the change that can be judged now, the oldest entry first; None if there is none.

    Of one that was judged already the effect stands among the entries behind it.
    """
    told = [each for each in happenings if each.event not in _IDLE]
    if not told or not _is_by_person(told[-1]):
        return None
    last = told[-1]
    burst = [last]
    for each in reversed(told[:-1]):
        is_same = _is_by_person(each) and each.partition_id == last.partition_id
        if not is_same or burst[-1].at_s - each.at_s > _BURST_S:
            break
        burst.append(each)
    first, found = burst[-1], _change(burst[-1], last)
    before = told[len(told) - len(burst) - 1] if len(burst) < len(told) else None
    is_steady = before is None or first.at_s - before.at_s >= _BEFORE_S
    is_time = AFTER_S <= now_s - last.at_s <= _LATEST_S
    is_told = any(each.event == EFFECT and each.id > last.id for each in happenings)
    return found if is_steady and is_time and not is_told else None


def effect(change: Change, known: Sequence[Piece], readings: Sequence[Reading]) -> str | None:
    """Return what a change brought, in words; None where one side was not measured for long."""
    before = (change.begin_s - _BEFORE_S, change.begin_s)
    after = (change.end_s + _SETTLING_S, change.end_s + AFTER_S)
    was, is_now = _speed(known, *before), _speed(known, *after)
    if was is None or is_now is None or was <= 0:
        return None
    said = f"{change.name}: {change.old} → {change.new}: {_percent(is_now / was - 1)} tok/s"
    waited = _first_token(readings, change.begin_s - _SETTLING_S, change.begin_s)
    # each reading is of the two minutes before it: only the last ones are of after the change
    waits = _first_token(readings, after[0] + _READING_S, after[1])
    if waited is None or waits is None:
        return said
    return f"{said}, first token {waited:.1f} → {waits:.1f} s"


def _is_by_person(each: Happening) -> bool:
    return each.event == _CONCURRENCY and each.who != _SYSTEM and each.partition_id is not None


def _change(first: Happening, last: Happening) -> Change | None:
    begun, ended = _DETAIL.fullmatch(first.detail), _DETAIL.fullmatch(last.detail)
    if begun is None or ended is None or last.partition_id is None:
        return None
    if begun["old"] == ended["new"]:
        return None  # taken back
    return Change(
        entry_id=last.id,
        partition_id=last.partition_id,
        name=ended["name"],
        old=begun["old"],
        new=ended["new"],
        begin_s=first.at_s,
        end_s=last.at_s,
    )


def _speed(known: Sequence[Piece], begin_s: float, end_s: float) -> float | None:
    covered_s = sum(last - first for first, last in stretches(known, begin_s, end_s))
    return mean(known, begin_s, end_s) if covered_s >= _LEAST_MEASURED_S else None


def _first_token(readings: Sequence[Reading], begin_s: float, end_s: float) -> float | None:
    inside = [each.first_token_s for each in readings if begin_s <= each.at_s <= end_s]
    return median(inside) if len(inside) >= _LEAST_READINGS else None


def _percent(ratio: float) -> str:
    """Return a change of speed in whole percent.

    >>> _percent(0.144), _percent(-0.31), _percent(0.004)
    ('+14 %', '−31 %', '±0 %')
    """
    whole = round(100 * ratio)
    return "±0 %" if whole == 0 else f"{'+' if whole > 0 else '−'}{abs(whole)} %"
