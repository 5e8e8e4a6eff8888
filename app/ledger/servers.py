"""Server rows: what each inference server said of itself, and when it was last good."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import text

from app.clock import from_ms, to_ms
from app.core.types import ServerId
from app.core.views import ServerView
from app.ledger.db import Ledger


def remember_server(ledger: Ledger, url: str, facts_json: str, now: datetime) -> ServerId:
    """Store what a server said of itself (secrets removed by the caller); return its id."""
    with ledger.write() as connection:
        server_id = connection.execute(
            text(
                "INSERT INTO server (url, facts_json, checked_at_ms, last_good_at_ms)"
                " VALUES (:url, :facts, :now, :now) ON CONFLICT (url) DO UPDATE"
                " SET facts_json = :facts, checked_at_ms = :now, last_good_at_ms = :now"
                " RETURNING id"
            ),
            {"url": url, "facts": facts_json, "now": to_ms(now)},
        ).scalar_one()
    return ServerId(server_id)


def mark_good(ledger: Ledger, good_at: Mapping[str, datetime]) -> None:
    """Store when servers were last good; one that is not known yet stays unknown."""
    with ledger.write() as connection:
        connection.execute(
            text("UPDATE server SET last_good_at_ms = :at WHERE url = :url"),
            [{"url": url, "at": to_ms(at)} for url, at in good_at.items()],
        )


def servers(ledger: Ledger) -> list[ServerView]:
    with ledger.read() as connection:
        rows = connection.execute(text("SELECT * FROM server ORDER BY id")).all()
    return [
        ServerView(
            id=ServerId(row.id),
            url=row.url,
            facts_json=row.facts_json,
            checked_at=None if row.checked_at_ms is None else from_ms(row.checked_at_ms),
            last_good_at=None if row.last_good_at_ms is None else from_ms(row.last_good_at_ms),
        )
        for row in rows
    ]
