"""What the page says beyond the stored states: remarks derived from a snapshot and a `now`.

Owns *not served*, *all paused*, *waiting for server*, *stalled* and *disk low*: when each begins,
since when it holds, and its sentence for people. Conditions are never stored as states; the
previous ones are handed in only so that a condition keeps its beginning.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

GIB = 1024**3
# once low, the disk must have this much more than the bound again: no flapping at the edge
_DISK_MARGIN_RATIO = 1.1
# of the free space, this share is taken to be ours
_DISK_SHARE_RATIO = 0.9


class ConditionKind(StrEnum):
    NOT_SERVED = "not served"
    ALL_PAUSED = "all paused"
    WAITING_FOR_SERVER = "waiting for server"
    STALLED = "stalled"
    DISK_LOW = "disk low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A remark that holds now, since when, and the sentence that says it."""

    kind: ConditionKind
    since: datetime
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was known at one moment. None: never seen, or not known.

    `in_flight_since`: since when, without a gap, something has been in flight.
    `server_progress_at`: when a counter of the server last moved, whoever's request it was.
    `needed_bytes`: what the rest of the run is expected to write.
    `not_served_since`: since when a run that should work has had no service.
    `all_paused_since`: since when all that is left of it has been paused.
    """

    n_in_flight: int = 0
    in_flight_since: datetime | None = None
    last_token_at: datetime | None = None
    server_progress_at: datetime | None = None
    server_waiting_since: datetime | None = None
    last_good_answer_at: datetime | None = None
    output_folder: str = ""
    free_bytes: int | None = None
    needed_bytes: int | None = None
    not_served_since: datetime | None = None
    serve_command: str = "longwatch serve"
    all_paused_since: datetime | None = None
    resume_command: str = "longwatch resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    stall_after_s: float = 600.0
    disk_low_bytes: int = 5 * GIB


def conditions(
    facts: Facts, thresholds: Thresholds, now: datetime, before: Iterable[Condition] = ()
) -> tuple[Condition, ...]:
    """Return the conditions that hold, the gravest first; `before` are those of the last look."""
    last = {condition.kind: condition for condition in before}
    unserved = _not_served(facts)
    # what the last service's workers saw is no figure of now
    waiting = None if unserved else _waiting(facts, now)
    found = (
        unserved,
        _all_paused(facts),
        waiting,
        # a server that is away is silent too, and the first says more
        None if unserved or waiting else _stalled(facts, thresholds, now),
        _disk_low(facts, thresholds, now, last.get(ConditionKind.DISK_LOW)),
    )
    return tuple(condition for condition in found if condition is not None)


def _not_served(facts: Facts) -> Condition | None:
    if facts.not_served_since is None:
        return None
    return Condition(
        kind=ConditionKind.NOT_SERVED,
        since=facts.not_served_since,
        sentence=f"no service serves this home; go on with: {facts.serve_command}",
    )


def _all_paused(facts: Facts) -> Condition | None:
    if facts.all_paused_since is None:
        return None
    return Condition(
        kind=ConditionKind.ALL_PAUSED,
        since=facts.all_paused_since,
        sentence=f"all that is left is paused; go on with: {facts.resume_command}",
    )


def _waiting(facts: Facts, now: datetime) -> Condition | None:
    since = facts.server_waiting_since
    if since is None:
        return None
    good_at = facts.last_good_answer_at
    good = f"{_span(good_at, now)} ago" if good_at is not None else "none yet"
    return Condition(
        kind=ConditionKind.WAITING_FOR_SERVER,
        since=since,
        sentence=f"The server has not answered for {_span(since, now)}; last good answer: {good}."
        " Nothing is lost, the run goes on by itself when it is back.",
    )


def _stalled(facts: Facts, thresholds: Thresholds, now: datetime) -> Condition | None:
    """Watch the silence of the server, not of one queued request: it may wait for hours."""
    if facts.n_in_flight == 0 or facts.in_flight_since is None:
        return None
    signs = (facts.in_flight_since, facts.last_token_at, facts.server_progress_at)
    since = max(sign for sign in signs if sign is not None)
    if (now - since).total_seconds() < thresholds.stall_after_s:
        return None
    n = facts.n_in_flight
    requests = "1 request is" if n == 1 else f"{n:,} requests are"
    return Condition(
        kind=ConditionKind.STALLED,
        since=since,
        sentence=f"No token from the server for {_span(since, now)} though {requests} in flight."
        " No new samples are sent until tokens come again; look at the server.",
    )


def _disk_low(
    facts: Facts, thresholds: Thresholds, now: datetime, last: Condition | None
) -> Condition | None:
    free, needed = facts.free_bytes, facts.needed_bytes or 0
    if free is None:
        return last  # not known now: what was true stays said
    margin = 1.0 if last is None else _DISK_MARGIN_RATIO
    if free >= thresholds.disk_low_bytes * margin and free * _DISK_SHARE_RATIO >= needed * margin:
        return None
    rest = f"; the rest of the run needs about {_size(needed)}" if needed else ""
    return Condition(
        kind=ConditionKind.DISK_LOW,
        since=last.since if last else now,
        sentence=f"{_size(free)} free at {facts.output_folder or 'the output folder'}{rest}."
        " Free some space there before it is full.",
    )


def _span(since: datetime, now: datetime) -> str:
    seconds = max(0, int((now - since).total_seconds()))
    minutes, hours = seconds // 60, seconds // 3600
    if minutes == 0:
        return f"{seconds} s"
    if hours == 0:
        return f"{minutes} min {seconds % 60} s" if minutes < 10 else f"{minutes} min"  # noqa: PLR2004 - two digits suffice
    return f"{hours} h {minutes % 60} min"


def _size(n_bytes: int) -> str:
    amount, unit = float(n_bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":  # noqa: PLR2004 - what a kilo is
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
