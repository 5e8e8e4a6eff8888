"""The conditions of a whole run, from what was seen at one moment and a `now`.

Owns *not served*, *all paused*, *server changed*, *waiting for server*, *stalled*, *disk low*,
*storage slow* and the three of the ledger (*disk full*, *locked*, *log large*): when each begins,
since when it holds, when it ends, and its sentence for people. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.core.conditions import SERVER_CHANGED, Condition, ConditionKind, after_server_change
from app.core.format import size, span_of
from app.core.ledger_trouble import (
    NO_LEDGER_TROUBLE,
    LedgerFacts,
    Trouble,
    disk_full,
    locked,
    log_large,
)

GIB = 1024**3
# once low, the disk must have this much more than the bound again: no flapping at the edge
_DISK_MARGIN_RATIO = 1.1
# of the free space, this share is taken to be ours
_DISK_SHARE_RATIO = 0.9
# a disk that was slow and is not slow again for so long is taken to be well
_STORAGE_CALM_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What was known at one moment. None: never seen, or not known.

    `in_flight_since`: since when, without a gap, something has been in flight.
    `server_progress_at`: when a counter of the server last moved, whoever's request it was.
    `needed_bytes`: what the rest of the run is expected to write.
    `not_served_since`: since when a run that should work has had no service.
    `all_paused_since`: since when all that is left of it has been paused.
    `unrecorded_s`: for how long a worker has recorded nothing, 0 while all do. `unrecorded_at`:
    when that was last so. `server_change`: what its server is now that it was not when the run
    began, "" if it is the same; held for it since `server_changed_since`.
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
    unrecorded_s: float = 0.0
    unrecorded_at: datetime | None = None
    server_change: str = ""
    server_changed_since: datetime | None = None
    ledger: LedgerFacts = NO_LEDGER_TROUBLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    stall_after_s: float = 600.0
    disk_low_bytes: int = 5 * GIB
    ledger_log_warn_bytes: int = 64_000_000
    storage_slow_after_s: float = 5.0
    waiting_after_s: float = 5.0


def run_conditions(
    facts: RunFacts, thresholds: Thresholds, now: datetime, before: Iterable[Condition] = ()
) -> tuple[Condition, ...]:
    """Return the conditions that hold, the gravest first; `before` are those of the last look."""
    last = {condition.kind: condition for condition in before}
    unserved = _not_served(facts)
    # what the last service's workers saw is no figure of now
    waiting = None if unserved else _waiting(facts, thresholds, now)
    full, held, large = _ledger(facts, thresholds, now, last)
    # a server that is away is silent too, tokens that are not recorded are not seen: both say more
    explained = unserved or facts.server_waiting_since or full or held
    found = (
        unserved,
        _server_changed(facts),
        _all_paused(facts),
        full,
        held,
        waiting,
        None if explained else _stalled(facts, thresholds, now),
        _disk_low(facts, thresholds, now, last.get(ConditionKind.DISK_LOW)),
        None
        if unserved or full or held
        else _storage_slow(facts, thresholds, now, last.get(ConditionKind.STORAGE_SLOW)),
        large,
    )
    return tuple(condition for condition in found if condition is not None)


def _ledger(
    facts: RunFacts, thresholds: Thresholds, now: datetime, last: Mapping[ConditionKind, Condition]
) -> tuple[Condition | None, ...]:
    """Return whether the ledger's disk is full, it is locked, its log is large."""

    def since(kind: ConditionKind) -> datetime | None:
        return last[kind].since if kind in last else None

    def said(kind: ConditionKind, trouble: Trouble | None) -> Condition | None:
        if trouble is None:
            return None
        return Condition(kind=kind, since=trouble.since, sentence=trouble.sentence)

    ledger, unrecorded_s = facts.ledger, facts.unrecorded_s
    full = disk_full(ledger, unrecorded_s, now, since(ConditionKind.LEDGER_FULL))
    held = None if full else locked(ledger, unrecorded_s, now)
    bound = thresholds.ledger_log_warn_bytes
    large = log_large(ledger, bound, now, since(ConditionKind.LEDGER_LOG))
    return (
        said(ConditionKind.LEDGER_FULL, full),
        said(ConditionKind.LEDGER_LOCKED, held),
        said(ConditionKind.LEDGER_LOG, large),
    )


def _not_served(facts: RunFacts) -> Condition | None:
    if facts.not_served_since is None:
        return None
    return Condition(
        kind=ConditionKind.NOT_SERVED,
        since=facts.not_served_since,
        sentence=f"no service serves this home; go on with: {facts.serve_command}",
    )


def _all_paused(facts: RunFacts) -> Condition | None:
    if facts.all_paused_since is None:
        return None
    return Condition(
        kind=ConditionKind.ALL_PAUSED,
        since=facts.all_paused_since,
        sentence=f"all that is left is paused; go on with: {facts.resume_command}",
    )


def _server_changed(facts: RunFacts) -> Condition | None:
    if facts.server_changed_since is None:
        return None
    return Condition(
        kind=ConditionKind.SERVER_CHANGED,
        since=facts.server_changed_since,
        sentence=f"{SERVER_CHANGED.capitalize()}{facts.server_change}. Nothing is sent to it."
        f" {after_server_change(facts.resume_command)}",
    )


def _waiting(facts: RunFacts, thresholds: Thresholds, now: datetime) -> Condition | None:
    """Let a server that is back in a moment wake nobody."""
    since = facts.server_waiting_since
    if since is None or (now - since).total_seconds() < thresholds.waiting_after_s:
        return None
    good_at = facts.last_good_answer_at
    good = f"{span_of(good_at, now)} ago" if good_at is not None else "none yet"
    return Condition(
        kind=ConditionKind.WAITING_FOR_SERVER,
        since=since,
        sentence=f"The server has not answered for {span_of(since, now)}; last good answer: {good}."
        " Nothing is lost, the run goes on by itself when it is back.",
    )


def _stalled(facts: RunFacts, thresholds: Thresholds, now: datetime) -> Condition | None:
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
        sentence=f"No token from the server for {span_of(since, now)} though {requests} in flight."
        " No new samples are sent until tokens come again; look at the server.",
    )


def _disk_low(
    facts: RunFacts, thresholds: Thresholds, now: datetime, last: Condition | None
) -> Condition | None:
    free, needed = facts.free_bytes, facts.needed_bytes or 0
    if free is None:
        return last  # not known now: what was true stays said
    margin = 1.0 if last is None else _DISK_MARGIN_RATIO
    if free >= thresholds.disk_low_bytes * margin and free * _DISK_SHARE_RATIO >= needed * margin:
        return None
    rest = f"; the rest of the run needs about {size(needed)}" if needed else ""
    return Condition(
        kind=ConditionKind.DISK_LOW,
        since=last.since if last else now,
        sentence=f"{size(free)} free at {facts.output_folder or 'the output folder'}{rest}."
        " Free some space there before it is full.",
    )


def _storage_slow(
    facts: RunFacts, thresholds: Thresholds, now: datetime, last: Condition | None
) -> Condition | None:
    """Begin once nothing was recorded for long; end once that was not so again for a while."""
    if facts.unrecorded_s >= thresholds.storage_slow_after_s:
        since = last.since if last else now - timedelta(seconds=facts.unrecorded_s)
        said = f"nothing has been recorded for {facts.unrecorded_s:.0f} s"
    elif last is not None and facts.unrecorded_at is not None:
        if (now - facts.unrecorded_at).total_seconds() >= _STORAGE_CALM_S:
            return None
        since, said = last.since, "workers record late"
    else:
        return None
    return Condition(
        kind=ConditionKind.STORAGE_SLOW,
        since=since,
        sentence=f"Storage slow: {said}. Answers are kept in memory and nothing is lost; see what"
        f" else writes to the disks of the ledger and of {facts.output_folder or 'the output'}.",
    )
