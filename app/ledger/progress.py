"""What the figures of a run are made of: one cheap row per partition, and lengths so far.

Owns reads only, each one short transaction and answered from an index or from counters.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from dataclasses import dataclass

from sqlalchemy import text

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
