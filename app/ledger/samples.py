"""Samples as people ask for them: retried in bulk, listed by reason, lengths for forecasts."""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from app.core.states import RETRYABLE, SampleState
from app.core.types import PartitionId, SampleId
from app.ledger.activity import Deed, note
from app.ledger.counters import Deltas, kept_states, move
from app.ledger.db import Ledger
from app.ledger.turns import wait_again

RECENT_LENGTHS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleLine:
    """A sample in a list: failed and rejected ones, with their reason."""

    id: SampleId
    key: str
    index: int
    replica: int
    state: SampleState
    attempts: int
    reason: str
    prompt_tokens: int | None


def retry(
    ledger: Ledger,
    partition_id: PartitionId,
    states: Sequence[SampleState],
    reason: str | None,
    deed: Deed,
    now: datetime,
) -> int:
    """Make samples pending again; return how many. Their old lines stay valid until replaced.

    Turns behind them wait again, and are not counted.

    `reason`: only those whose reason contains it. Attempts are counted afresh.
    """
    wanted = [state for state in states if state in RETRYABLE]
    moved = 0
    with ledger.write() as connection:
        deltas = Deltas()
        for state in wanted:
            ids = (
                connection.execute(
                    text(
                        "UPDATE sample SET state = 'pending', charged = 0, server_deaths = 0,"
                        " claim_rank = 1, not_before_at_ms = 0 WHERE partition_id = :id"
                        " AND state = :state AND token_offset IS NOT NULL"
                        " AND (:reason IS NULL OR instr(coalesce(reason, ''), :reason) > 0)"
                        " RETURNING id"
                    ),
                    {"id": partition_id, "state": state, "reason": reason},
                )
                .scalars()
                .all()
            )
            deltas.moved(state, SampleState.PENDING, len(ids))
            moved += len(ids)
            wait_again(connection, partition_id, ids)
        if moved:
            move(connection, partition_id, deltas)
            connection.execute(
                text("UPDATE partition SET sealed_at_ms = NULL WHERE id = :id"),
                {"id": partition_id},
            )
            note(connection, deed, now)
    return moved


def with_state(
    ledger: Ledger, partition_id: PartitionId, state: SampleState
) -> Iterator[SampleLine]:
    """Yield the partition's samples of one state in input order, in pages."""
    after = -1
    while page := _page(ledger, partition_id, state, after):
        for position, line in page:
            after = position
            yield line


def _page(
    ledger: Ledger, partition_id: PartitionId, state: SampleState, after: int
) -> list[tuple[int, SampleLine]]:
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT id, position, key, record_index, replica, state, attempt, reason,"
                " prompt_tokens FROM sample WHERE partition_id = :id AND state = :state"
                " AND position > :after ORDER BY position LIMIT 1000"
            ),
            {"id": partition_id, "state": state, "after": after},
        ).all()
    return [
        (
            row.position,
            SampleLine(
                id=SampleId(row.id),
                key=row.key,
                index=row.record_index,
                replica=row.replica,
                state=SampleState(row.state),
                attempts=row.attempt,
                reason=row.reason or "",
                prompt_tokens=row.prompt_tokens,
            ),
        )
        for row in rows
    ]


def reasons(ledger: Ledger, partition_id: PartitionId) -> list[tuple[SampleState, str, int]]:
    """Return (state, reason, count) of what failed or was rejected, most frequent first."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT state, coalesce(reason, '') AS why, count(*) AS n FROM sample"
                " WHERE partition_id = :id AND state IN ('failed', 'rejected')"
                " GROUP BY state, why ORDER BY n DESC LIMIT 50"
            ),
            {"id": partition_id},
        ).all()
    return [(SampleState(row.state), row.why, row.n) for row in rows]


def recent_lengths(ledger: Ledger, partition_id: PartitionId) -> array[int]:
    """Return the lengths of up to 4,000 kept answers, those latest in input order."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT output_tokens FROM sample WHERE partition_id = :id"
                f" AND state IN ({kept_states()}) ORDER BY position DESC LIMIT :n"
            ),
            {"id": partition_id, "n": RECENT_LENGTHS},
        ).scalars()
        return array("I", rows)
