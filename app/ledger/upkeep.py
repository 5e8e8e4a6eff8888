"""Care for the ledger's file: its write-ahead log folded in, and what a failed write failed of.

Owns the checkpoints that the service makes itself. The workers' own ones never cut the file back,
and none at all gets past a program that reads for long. Sizes come from stat(), never open().
"""

import sqlite3
from dataclasses import dataclass
from enum import StrEnum

from app.errors import LedgerError
from app.ledger.db import Ledger


class WriteTrouble(StrEnum):
    """Why the ledger took a write not."""

    FULL = "full"
    LOCKED = "locked"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The write-ahead log after a checkpoint. `is_held`: somebody still reads what is in it."""

    n_bytes: int
    is_held: bool


def fold_log(ledger: Ledger, cut_from_bytes: int) -> Log:
    """Move what is in the log into the ledger as far as readers let it.

    A log of `cut_from_bytes` that is folded in is cut back; a smaller one is used again. Waits for
    nobody but, for the cutting, as long as the handle's own busy timeout.
    """
    _, n_pages, n_folded = ledger.pragma("PRAGMA wal_checkpoint(PASSIVE)")
    is_held = n_folded < n_pages
    if not is_held and log_bytes(ledger) >= cut_from_bytes:
        ledger.pragma("PRAGMA wal_checkpoint(TRUNCATE)")
    return Log(n_bytes=log_bytes(ledger), is_held=is_held)


def log_bytes(ledger: Ledger) -> int:
    """Return the size of the write-ahead log, 0 where there is none."""
    try:
        return ledger.path.with_name(f"{ledger.path.name}-wal").stat().st_size
    except OSError:
        return 0


def trouble_of(error: LedgerError) -> WriteTrouble:
    """Return what kind of trouble SQLite told."""
    cause: object = error.__cause__
    cause = getattr(cause, "orig", cause)
    if not isinstance(cause, sqlite3.Error):
        return WriteTrouble.OTHER
    code = getattr(cause, "sqlite_errorcode", 0)
    if code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return WriteTrouble.FULL
    if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return WriteTrouble.LOCKED
    return WriteTrouble.OTHER
