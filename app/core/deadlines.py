"""Deadlines: "stop at 08:00, ending cleanly", of a run or of one partition.

Owns how a moment is written, which deadline is due, and how its effect is told from what a person
did. Pure: `now` is handed in, and so is the zone of the machine, as a function from a moment
without zone to one with it.
Invariant: a deadline takes effect once. What a person sets going after it has passed goes on, so
only what has stood in its state since before the deadline is due.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.core.states import PartitionState, RunState
from app.core.types import PartitionId
from app.core.views import PartitionView, RunView

Localize = Callable[[datetime], datetime]

NONE = "none"
REMEDY = 'write a time of day ("08:00"), a date with it ("2026-12-01T08:00+01:00") or "+6h"'
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*")
_SPAN = re.compile(r"\+(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_WHILE_PAUSED = " while paused"
_REACHED = re.compile(rf"deadline \d{{2}}:\d{{2}}(:\d{{2}})? reached({_WHILE_PAUSED})?")
_LONGEST = timedelta(days=366)
_RESTING = (RunState.STOPPED, RunState.FINISHED)


class DeadlineError(ValueError):
    """A text that is no moment to come; says which, and what to write."""


def parse_deadline(
    text: str, now: datetime, localize: Localize = datetime.astimezone
) -> datetime | None:
    """Return the moment that a text means, in the machine's zone; None for "none".

    A time of day is the next such moment; a date without offset is meant in the machine's zone.
    DeadlineError if the text is not understood, has passed, or is more than a year ahead.
    """
    said = text.strip()
    if said == NONE:
        return None
    if said.startswith("+"):
        return _in_reach(text, localize(now + _span(text, said)), now)
    if found := _TIME.fullmatch(said):
        return _next(now, localize, *(int(part or 0) for part in found.groups()))
    moment = _dated(text, said, localize)
    if moment <= now:
        right_now = shown(localize(now))
        raise DeadlineError(f'"{text}" has passed: it is {right_now}; {REMEDY}')
    return _in_reach(text, moment, now)


def deadline_problem(text: object) -> str | None:
    """Return why a text is no deadline at whatever time it is, or None."""
    if not isinstance(text, str):
        return f"{text!r} is not a moment; {REMEDY}"
    said = text.strip()
    try:
        if said.startswith("+"):
            _span(text, said)
        elif said != NONE and not _TIME.fullmatch(said):
            _dated(text, said, datetime.astimezone)
    except DeadlineError as error:
        return str(error)
    return None


def _next(now: datetime, localize: Localize, hour: int, minute: int, second: int) -> datetime:
    today = localize(now).replace(
        hour=hour, minute=minute, second=second, microsecond=0, tzinfo=None
    )
    moment = localize(today)  # anew: the offset of that hour need not be that of now
    return moment if moment > now else localize(today + timedelta(days=1))


def _span(text: str, said: str) -> timedelta:
    found = _SPAN.fullmatch(said)
    if found is None or not any(found.groups()):
        raise DeadlineError(f'"{text}" is not a span of time such as "+6h" or "+1h30m"')
    try:
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except (OverflowError, ValueError):  # more days, or more digits, than Python counts
        span = _LONGEST * 2
    if not timedelta() < span <= _LONGEST:
        raise DeadlineError(f'"{text}" is not a span of one second to one year')
    return span


def _dated(text: str, said: str, localize: Localize) -> datetime:
    try:
        moment = datetime.fromisoformat(said) if _DATED.fullmatch(said) else None
    except ValueError:
        moment = None
    if moment is None:
        raise DeadlineError(f'"{text}" is not a moment; {REMEDY}')
    try:
        return localize(moment)
    except (OverflowError, ValueError):  # its day is no day of the calendar in this zone
        raise DeadlineError(f'"{text}" is beyond the calendar; {REMEDY}') from None


def _in_reach(text: str, moment: datetime, now: datetime) -> datetime:
    if moment - now > _LONGEST:
        raise DeadlineError(f'"{text}" is more than a year ahead')
    return moment


def shown(moment: datetime) -> str:
    """Return a moment in full, with its zone; it stands in the zone of the reader.

    >>> shown(datetime.fromisoformat("2026-12-01T08:00:00+01:00"))
    'Tue 2026-12-01 08:00 +01:00'
    """
    seconds = f":{moment:%S}" if moment.second else ""
    return f"{moment:%a %Y-%m-%d %H:%M}{seconds} {moment.isoformat()[-6:]}"


def reason_of(moment: datetime, *, was_paused: bool = False) -> str:
    """Return the reason that stands with what a deadline has stopped.

    >>> reason_of(datetime.fromisoformat("2026-12-01T08:00:00+01:00"))
    'deadline 08:00 reached'
    """
    seconds = f":{moment:%S}" if moment.second else ""
    paused = _WHILE_PAUSED if was_paused else ""
    return f"deadline {moment:%H:%M}{seconds} reached{paused}"


def is_by_deadline(reason: str) -> bool:
    """Return whether a deadline, and nobody else, has stopped what stands with this reason."""
    return _REACHED.fullmatch(reason) is not None


def goes_on_when_moved(reason: str) -> bool:
    """Return whether moving the deadline sets going what stands with this reason.

    Not a run that had been paused: the deadline has not ended its work.
    """
    return is_by_deadline(reason) and not reason.endswith(_WHILE_PAUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is to be stopped now, each with the deadline that says so."""

    run: datetime | None = None
    partitions: tuple[tuple[PartitionId, datetime], ...] = ()


def due(run: RunView, partitions: Iterable[PartitionView], now: datetime) -> Due:
    """Return what a deadline stops now, a paused run too: nobody is to set it going by mistake.

    A partition that is over has nothing left to stop.
    """
    may_work = run.state in (RunState.RUNNING, RunState.PAUSED)
    return Due(
        run=run.deadline_at
        if may_work and _has_passed(run.deadline_at, run.state_since, now)
        else None,
        partitions=tuple(
            (each.id, each.deadline_at)
            for each in partitions
            if may_work
            and each.state is not PartitionState.PAUSED
            and not each.is_over
            and each.deadline_at is not None
            and _has_passed(each.deadline_at, each.state_since, now)
        ),
    )


def _has_passed(deadline: datetime | None, state_since: datetime, now: datetime) -> bool:
    return deadline is not None and state_since < deadline <= now


def is_spent(run: RunView, deadline_at: datetime | None, now: datetime) -> bool:
    """Return whether a deadline of a run at rest has passed: submitted again, it is meant anew."""
    return run.state in _RESTING and deadline_at is not None and deadline_at <= now
