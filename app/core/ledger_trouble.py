"""What can be wrong with the ledger's file while a service lives: full, locked, its log too large.

Owns when each begins and its sentence for people; `conditions.py` puts them among the others. Pure.
Invariant: nothing of this loses an answer, and each sentence says so or says what to do.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.core.format import size, span_of

# with less than this on its disk, a ledger that takes nothing is full
_NO_ROOM_BYTES = 1_000_000
# writers of ours wait for each other too; only what lasts longer is somebody else's lock
_LOCKED_AFTER_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFacts:
    """What is known of the ledger's file. None: it is not so, or not known.

    `full_since`, `locked_since`: since when it has taken no write of the service, for want of room
    or because another program holds it. `log_bytes`: size of its write-ahead log. `read_since`:
    since when the log cannot be folded in because somebody reads. `others`: the programs that have
    the file open and are none of ours, in words.
    """

    folder: str = ""
    free_bytes: int | None = None
    full_since: datetime | None = None
    locked_since: datetime | None = None
    log_bytes: int | None = None
    read_since: datetime | None = None
    others: tuple[str, ...] = ()


NO_LEDGER_TROUBLE = LedgerFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    since: datetime
    sentence: str


def disk_full(
    ledger: LedgerFacts, unrecorded_s: float, now: datetime, said_since: datetime | None
) -> Trouble | None:
    """Believe our own write that failed, or workers that record nothing on a disk without room."""
    free = ledger.free_bytes
    no_room = free is not None and free < _NO_ROOM_BYTES and unrecorded_s > 0
    if ledger.full_since is None and not no_room:
        return None
    left = "" if free is None else f": {size(free)} free"
    return Trouble(
        since=said_since or ledger.full_since or now - timedelta(seconds=unrecorded_s),
        sentence=f"The disk of the ledger, {ledger.folder}, is full{left}. Answers that come are"
        " kept in memory and no new samples are sent. Free some space there: it goes on by itself.",
    )


def locked(ledger: LedgerFacts, unrecorded_s: float, now: datetime) -> Trouble | None:
    """Believe our own write that was refused; workers that record nothing say since when."""
    if ledger.locked_since is None:
        return None
    since = min(ledger.locked_since, now - timedelta(seconds=unrecorded_s))
    if (now - since).total_seconds() < _LOCKED_AFTER_S:
        return None
    return Trouble(
        since=since,
        sentence=f"The ledger has been locked by {_others(ledger)} for {span_of(since, now)}:"
        " what comes is kept in memory, and figures are as they were before. It goes on by itself"
        " when the lock is gone.",
    )


def log_large(
    ledger: LedgerFacts, bound_bytes: int, now: datetime, said_since: datetime | None
) -> Trouble | None:
    n_bytes, reading = ledger.log_bytes, ledger.read_since
    if n_bytes is None or n_bytes < bound_bytes:
        return None
    because = "and could not be folded in yet; it is tried again every few seconds."
    if reading is not None:
        because = (
            f"because {_others(ledger)} has kept it open for reading for {span_of(reading, now)}."
            " End that, and the log shrinks by itself."
        )
    return Trouble(
        since=reading or said_since or now,
        sentence=f"The ledger's write-ahead log is {size(n_bytes)} {because}",
    )


def _others(ledger: LedgerFacts) -> str:
    return " or ".join(ledger.others) or "another program"
