"""Snapshot rows: what a run's figures were, one each few seconds, fewer with age.

Owns the rows, not what stands in them: the recorder writes and reads the JSON. Every statement goes
by the index (run_id, at_ms).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, text

from app.core.types import RunId
from app.ledger.activity import Deed, note
from app.ledger.db import Ledger

_FORGET = text("DELETE FROM snapshot WHERE run_id = :run AND at_ms IN :moments").bindparams(
    bindparam("moments", expanding=True)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run's figures at one moment, as compact JSON."""

    run_id: RunId
    at_ms: int
    figures_json: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surplus:
    """Rows of a run that may go, by their moments."""

    run_id: RunId
    moments_ms: Sequence[int]


def record(
    ledger: Ledger,
    rows: Sequence[Snapshot],
    deeds: Sequence[tuple[Deed, datetime]] = (),
    surplus: Surplus | None = None,
) -> None:
    """Add rows and entries of the activity and remove what is too many, in one transaction."""
    with ledger.write() as connection:
        if rows:
            connection.execute(
                text(
                    "INSERT INTO snapshot (run_id, at_ms, figures_json)"
                    " VALUES (:run, :at, :figures)"
                ),
                [{"run": row.run_id, "at": row.at_ms, "figures": row.figures_json} for row in rows],
            )
        for deed, at in deeds:
            note(connection, deed, at)
        if surplus is not None and surplus.moments_ms:
            connection.execute(
                _FORGET, {"run": surplus.run_id, "moments": list(surplus.moments_ms)}
            )


def between(
    ledger: Ledger, run_id: RunId, from_ms: int, to_ms: int, limit: int = 100_000
) -> list[Snapshot]:
    """Return the run's rows with from_ms <= at < to_ms, the oldest first."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT at_ms, figures_json FROM snapshot WHERE run_id = :run AND at_ms >= :begin"
                " AND at_ms < :end ORDER BY at_ms LIMIT :n"
            ),
            {"run": run_id, "begin": from_ms, "end": to_ms, "n": limit},
        ).all()
    return [Snapshot(run_id=run_id, at_ms=at_ms, figures_json=value) for at_ms, value in rows]


def latest(ledger: Ledger, run_id: RunId) -> Snapshot | None:
    with ledger.read() as connection:
        row = connection.execute(
            text(
                "SELECT at_ms, figures_json FROM snapshot WHERE run_id = :run"
                " ORDER BY at_ms DESC LIMIT 1"
            ),
            {"run": run_id},
        ).first()
    return None if row is None else Snapshot(run_id=run_id, at_ms=row[0], figures_json=row[1])
