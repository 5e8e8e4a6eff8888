"""The activity list: one row per deed of an operator and per event of the system. Append-only."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, text

from app.clock import from_ms, to_ms
from app.core.types import PartitionId, RunId
from app.ledger.db import Ledger

_NEWEST_READ = 2_000


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


def add_all(ledger: Ledger, deeds: Sequence[tuple[Deed, datetime]]) -> None:
    """Add deeds that happened at their own moments, all or none."""
    with ledger.write() as connection:
        for deed, at in deeds:
            note(connection, deed, at)


def add_once(ledger: Ledger, deed: Deed, after_id: int, now: datetime) -> bool:
    """Add a deed that may stand once behind an entry; return whether it did not stand there yet."""
    with ledger.write() as connection:
        added = connection.execute(
            text(
                "INSERT INTO activity (run_id, partition_id, at_ms, who, event, detail)"
                " SELECT :run_id, :partition_id, :at_ms, :who, :event, :detail WHERE NOT EXISTS"
                " (SELECT 1 FROM activity WHERE run_id = :run_id AND id > :after"
                " AND event = :event AND partition_id IS :partition_id)"
            ),
            {
                "run_id": deed.run_id,
                "partition_id": deed.partition_id,
                "at_ms": to_ms(now),
                "who": deed.who,
                "event": deed.event,
                "detail": deed.detail,
                "after": after_id,
            },
        ).rowcount
    return bool(added)


def last_of(
    ledger: Ledger, run_ids: Sequence[RunId], events: Sequence[str], begin: str
) -> tuple[str, datetime] | None:
    """Return the last of these events of the runs whose detail begins so, and when it was."""
    statement = text(
        "SELECT event, at_ms FROM activity WHERE run_id IN :run_ids AND event IN :events"
        " AND substr(detail, 1, length(:begin)) = :begin ORDER BY id DESC LIMIT 1"
    ).bindparams(bindparam("run_ids", expanding=True), bindparam("events", expanding=True))
    values = {"run_ids": list(run_ids), "events": list(events), "begin": begin}
    with ledger.read() as connection:
        row = connection.execute(statement, values).first()
    return None if row is None else (row.event, from_ms(row.at_ms))


def latest(ledger: Ledger, run_id: RunId, limit: int = 50) -> list[Activity]:
    """Return the newest entries of a run, newest first."""
    with ledger.read() as connection:
        rows = connection.execute(
            text("SELECT * FROM activity WHERE run_id = :run_id ORDER BY id DESC LIMIT :n"),
            {"run_id": run_id, "n": limit},
        ).all()
    return [_entry(row) for row in rows]


MAX_LOOKED_AT = 20_000  # entries that one question goes through at most
_WINDOW = (
    "SELECT * FROM activity WHERE run_id = :run_id AND id < :before ORDER BY id DESC LIMIT :most"
)
LISTING = text(
    f"SELECT * FROM ({_WINDOW}) WHERE (:who = '' OR who = :who) AND (:event = '' OR event = :event)"
    " AND (:partition_id = 0 OR partition_id = :partition_id) ORDER BY id DESC LIMIT :n"
)
FILTERS = text(f"SELECT DISTINCT who, event FROM ({_WINDOW})")
_END = text(f"SELECT min(id) AS last, count(*) AS n FROM ({_WINDOW})")
NEWER = text(
    "SELECT id FROM activity WHERE run_id = :run_id AND id > :at ORDER BY id LIMIT 1 OFFSET :n"
)
NO_END = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which entries are meant: "" and None leave it open; 0: however new."""

    who: str = ""
    event: str = ""
    partition_id: PartitionId | None = None
    before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of entries, newest first. `older_than` begins the next page, 0 if there is none."""

    entries: tuple[Activity, ...]
    older_than: int


def listing(ledger: Ledger, run_id: RunId, wanted: Wanted, n: int = 200) -> Listing:
    """Return the newest `n` entries that are wanted.

    At most `MAX_LOOKED_AT` are gone through, along the index of the list; what is older is left to
    the next page.
    """
    window = {"run_id": run_id, "before": wanted.before or NO_END, "most": MAX_LOOKED_AT}
    asked = {
        "who": wanted.who,
        "event": wanted.event,
        "partition_id": wanted.partition_id or 0,
        "n": n + 1,
    }
    with ledger.read() as connection:
        rows = connection.execute(LISTING, window | asked).all()
        end = None if len(rows) > n else connection.execute(_END, window).one()
    entries = tuple(_entry(row) for row in rows[:n])
    if end is None:
        return Listing(entries=entries, older_than=entries[-1].id)
    return Listing(entries=entries, older_than=end.last if end.n == MAX_LOOKED_AT else 0)


def filters(ledger: Ledger, run_id: RunId) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return who did something in a run lately, and what happened, each in order of the words."""
    window = {"run_id": run_id, "before": NO_END, "most": MAX_LOOKED_AT}
    with ledger.read() as connection:
        rows = connection.execute(FILTERS, window).all()
    return tuple(sorted({row.who for row in rows})), tuple(sorted({row.event for row in rows}))


def page_of(ledger: Ledger, run_id: RunId, at: int, n: int = 200) -> int:
    """Return the `before` of a page that holds an entry and newer ones; 0 for the newest page."""
    with ledger.read() as connection:
        found = connection.execute(NEWER, {"run_id": run_id, "at": at, "n": n // 2}).scalar()
    return 0 if found is None else int(found)


def onward(ledger: Ledger, run_id: RunId, after_id: int, limit: int = 1_000) -> list[Activity]:
    """Return the entries of a run that follow an entry, the oldest first."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT * FROM activity WHERE run_id = :run_id AND id > :after ORDER BY id LIMIT :n"
            ),
            {"run_id": run_id, "after": after_id, "n": limit},
        ).all()
    return [_entry(row) for row in rows]


def _entry(row: Row[Any]) -> Activity:
    return Activity(
        id=row.id,
        at=from_ms(row.at_ms),
        who=row.who,
        event=row.event,
        detail=row.detail,
        partition_id=row.partition_id,
    )


def newest_of(ledger: Ledger, run_id: RunId, who: str, events: Sequence[str]) -> list[Activity]:
    """Return that person's newest entry of each of these events, one for each partition too."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT * FROM activity WHERE id IN (SELECT max(id) FROM activity"
                " WHERE run_id = :run_id AND who = :who AND event IN :events"
                " GROUP BY event, partition_id)"
            ).bindparams(bindparam("events", expanding=True)),
            {"run_id": run_id, "who": who, "events": list(events)},
        ).all()
    return [_entry(row) for row in rows]


def within(
    ledger: Ledger, run_id: RunId, begin: datetime, end: datetime, events: Sequence[str]
) -> list[Activity]:
    """Return the entries of these events in a stretch of time, the oldest first.

    Looked for among the newest 2,000 entries of the run: by its index, so that it stays cheap.
    """
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT * FROM (SELECT * FROM activity WHERE run_id = :run_id"
                " ORDER BY id DESC LIMIT :n) AS newest"
                " WHERE at_ms BETWEEN :begin AND :end AND event IN :events ORDER BY id"
            ).bindparams(bindparam("events", expanding=True)),
            {
                "run_id": run_id,
                "n": _NEWEST_READ,
                "begin": to_ms(begin),
                "end": to_ms(end),
                "events": list(events),
            },
        ).all()
    return [_entry(row) for row in rows]
