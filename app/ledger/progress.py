"""What the figures of a run are made of: one cheap row per partition, and lengths so far.

Owns reads only, each one short transaction and answered from an index or from counters.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from app.core.answer import PROMPTED_WITH
from app.core.states import PartitionState, RunState
from app.core.types import PartitionId, RunId
from app.ledger.db import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """A partition of a live run at one moment: what its speed is measured from."""

    run_id: RunId
    partition_id: PartitionId
    is_working: bool
    own_concurrency: int | None
    received_tokens: int
    n_in_flight: int


def pulses(ledger: Ledger) -> list[Pulse]:
    """Return the partitions of all runs that are neither finished nor stopped."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT p.id, p.run_id, p.state, p.own_concurrency, p.received_tokens,"
                " r.state AS run_state, (SELECT coalesce(sum(w.in_flight), 0) FROM worker w"
                " WHERE w.partition_id = p.id AND w.state <> 'exited') AS n_in_flight"
                " FROM partition p JOIN run r ON r.id = p.run_id"
                " WHERE r.state IN ('running', 'paused', 'stopping') ORDER BY p.id"
            )
        ).all()
    return [
        Pulse(
            run_id=RunId(row.run_id),
            partition_id=PartitionId(row.id),
            is_working=row.run_state == RunState.RUNNING and row.state != PartitionState.PAUSED,
            own_concurrency=row.own_concurrency,
            received_tokens=row.received_tokens,
            n_in_flight=row.n_in_flight,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedAttempts:
    """Attempts of a partition that were charged, and those of them with another prompt."""

    partition_id: PartitionId
    n: int
    n_mismatched: int


def charged_attempts(
    ledger: Ledger, run_id: RunId, after_id: int | None
) -> tuple[int, list[ChargedAttempts]]:
    """Return the last attempt's id, and what was charged after the given one; None: nothing yet."""
    with ledger.read() as connection:
        last_id = connection.execute(
            text("SELECT coalesce(max(id), 0) FROM attempt WHERE id > 0")  # so it goes by the key
        ).scalar_one()
        if after_id is None or last_id == after_id:
            return last_id, []
        rows = connection.execute(
            text(
                "SELECT s.partition_id, count(*) AS n,"
                " sum(CASE WHEN instr(a.reason, :mismatch) > 0 THEN 1 ELSE 0 END) AS n_mismatched"
                " FROM attempt a"
                " JOIN sample s ON s.id = a.sample_id JOIN partition p ON p.id = s.partition_id"
                " WHERE a.id > :after AND a.id <= :last AND a.charged AND p.run_id = :run"
                " GROUP BY s.partition_id"
            ),
            {"mismatch": PROMPTED_WITH, "after": after_id, "last": last_id, "run": run_id},
        ).all()
    return last_id, [
        ChargedAttempts(
            partition_id=PartitionId(row.partition_id), n=row.n, n_mismatched=row.n_mismatched
        )
        for row in rows
    ]


def shares_of(ledger: Ledger, run_id: RunId) -> dict[PartitionId, int]:
    """Return how many requests the living worker of each partition may keep in flight."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT w.partition_id, sum(s.n) AS n FROM partition p"
                " JOIN worker w ON w.partition_id = p.id AND w.state <> 'exited'"
                " JOIN share s ON s.worker_id = w.id WHERE p.run_id = :run GROUP BY w.partition_id"
            ),
            {"run": run_id},
        ).all()
    return {PartitionId(row.partition_id): row.n for row in rows}


def n_half_written(ledger: Ledger, partition_ids: Sequence[PartitionId]) -> int:
    """Return how many answers of these partitions were begun, saved, and wait to go on."""
    statement = text(
        "SELECT count(*) FROM sample WHERE partition_id = :id AND state = 'pending'"
        " AND claim_rank IS NOT NULL AND claim_rank = 0 AND held_tokens > 0"
    )
    with ledger.read() as connection:
        return sum(
            connection.execute(statement, {"id": each}).scalar_one() for each in partition_ids
        )


def started_lengths(ledger: Ledger, partition_id: PartitionId) -> array[int]:
    """Return the lengths so far of answers that were begun and have not ended."""
    with ledger.read() as connection:
        running = connection.execute(
            text(
                "SELECT held_tokens FROM sample WHERE state = 'running' AND worker_id IN"
                " (SELECT id FROM worker WHERE partition_id = :id AND state <> 'exited')"
            ),
            {"id": partition_id},
        ).scalars()
        lengths = array("I", running)
        put_back = connection.execute(
            text(
                "SELECT held_tokens FROM sample WHERE partition_id = :id AND state = 'pending'"
                " AND claim_rank IS NOT NULL AND claim_rank = 0"
            ),
            {"id": partition_id},
        ).scalars()
        lengths.extend(put_back)
    return lengths
