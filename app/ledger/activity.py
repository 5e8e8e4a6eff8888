"""The activity list: one row per deed of an operator and per event of the system. Append-only."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from app.clock import from_ms, to_ms
from app.core.types import PartitionId, RunId
from app.ledger.db import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    id: int
    at: datetime
    who: str
    event: str
    detail: str
    partition_id: PartitionId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Something to be noted: who did what, with what effect, to what."""

    who: str
    event: str
    detail: str = ""
    run_id: RunId | None = None
    partition_id: PartitionId | None = None


def note(connection: Connection, deed: Deed, now: datetime) -> None:
    """Add the deed inside the caller's transaction, so that it stands only if the deed does."""
    connection.execute(
        text(
            "INSERT INTO activity (run_id, partition_id, at_ms, who, event, detail)"
            " VALUES (:run_id, :partition_id, :at_ms, :who, :event, :detail)"
        ),
        {
            "run_id": deed.run_id,
            "partition_id": deed.partition_id,
            "at_ms": to_ms(now),
            "who": deed.who,
            "event": deed.event,
            "detail": deed.detail,
        },
    )


def add(ledger: Ledger, deed: Deed, now: datetime) -> None:
    with ledger.write() as connection:
        note(connection, deed, now)


def latest(ledger: Ledger, run_id: RunId, limit: int = 50) -> list[Activity]:
    """Return the newest entries of a run, newest first."""
    with ledger.read() as connection:
        rows = connection.execute(
            text("SELECT * FROM activity WHERE run_id = :run_id ORDER BY id DESC LIMIT :n"),
            {"run_id": run_id, "n": limit},
        ).all()
    return [
        Activity(
            id=row.id,
            at=from_ms(row.at_ms),
            who=row.who,
            event=row.event,
            detail=row.detail,
            partition_id=row.partition_id,
        )
        for row in rows
    ]
