"""Worker rows: registered before the process starts, watched by lease, buried after it is reaped.

A worker row is the lease over its running samples. Ids are never used twice. `bury` is the only
way in which running samples come back without their worker, and is called only for a worker whose
death is certain.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, text

from app.clock import from_ms, to_ms
from app.core.states import SampleState
from app.core.types import PartitionId, RunId, ServerId, WorkerId
from app.core.views import WorkerView
from app.errors import DisownedError
from app.ledger.counters import Deltas, move
from app.ledger.db import Ledger


def register(ledger: Ledger, partition_id: PartitionId, lease_s: float, now: datetime) -> WorkerId:
    """Add a worker for the partition; its first lease covers the start of its process."""
    with ledger.write() as connection:
        worker_id = connection.execute(
            text(
                "INSERT INTO worker (partition_id, pid, state, desired, lease_expires_at_ms,"
                " started_at_ms, exit_reason, notice, in_flight, received_tokens) VALUES"
                " (:partition, 0, 'starting', 'work', :lease, :now, '', '', 0, 0) RETURNING id"
            ),
            {
                "partition": partition_id,
                "lease": to_ms(now + timedelta(seconds=lease_s)),
                "now": to_ms(now),
            },
        ).scalar_one()
    return WorkerId(worker_id)


def set_pid(ledger: Ledger, worker_id: WorkerId, pid: int) -> None:
    with ledger.write() as connection:
        connection.execute(
            text("UPDATE worker SET pid = :pid WHERE id = :id"), {"pid": pid, "id": worker_id}
        )


def set_desired(ledger: Ledger, worker_id: WorkerId, desired: str) -> bool:
    """Order a worker to `work`, `drain` or `stop`; return whether that is new."""
    with ledger.write() as connection:
        result = connection.execute(
            text(
                "UPDATE worker SET desired = :desired"
                " WHERE id = :id AND state <> 'exited' AND desired <> :desired"
            ),
            {"desired": desired, "id": worker_id},
        )
    return result.rowcount == 1


def set_shares(ledger: Ledger, shares: Mapping[WorkerId, Mapping[ServerId, int]]) -> None:
    """Replace the shares of these workers."""
    with ledger.write() as connection:
        for worker_id, by_server in shares.items():
            connection.execute(text("DELETE FROM share WHERE worker_id = :id"), {"id": worker_id})
            rows = [
                {"worker": worker_id, "server": server_id, "n": n}
                for server_id, n in by_server.items()
            ]
            if rows:
                connection.execute(
                    text(
                        "INSERT INTO share (worker_id, server_id, n) VALUES (:worker, :server, :n)"
                    ),
                    rows,
                )


def deregister(ledger: Ledger, worker_id: WorkerId, reason: str, now: datetime) -> None:
    """Mark a worker as gone that has put everything back; DisownedError if samples still run."""
    with ledger.write() as connection:
        running = connection.execute(
            text("SELECT count(*) FROM sample WHERE worker_id = :id AND state = 'running'"),
            {"id": worker_id},
        ).scalar_one()
        if running:
            raise DisownedError(f"worker {worker_id} leaves with {running} running samples")
        connection.execute(
            text(
                "UPDATE worker SET state = 'exited', ended_at_ms = :now, exit_reason = :why,"
                " in_flight = 0 WHERE id = :id AND state <> 'exited'"
            ),
            {"now": to_ms(now), "why": reason, "id": worker_id},
        )
        _forget_reservation(connection, worker_id)


def _forget_reservation(connection: Connection, worker_id: WorkerId) -> None:
    connection.execute(
        text(
            "UPDATE partition SET reserved_tokens = 0"
            " WHERE id = (SELECT partition_id FROM worker WHERE id = :id)"
        ),
        {"id": worker_id},
    )


def bury(ledger: Ledger, worker_id: WorkerId, reason: str, now: datetime) -> int:
    """Put a dead worker's running samples back, uncharged; return how many there were.

    Its shard's tail must have been adopted before. The samples keep their checkpoints.
    """
    with ledger.write() as connection:
        partition_id = connection.execute(
            text("SELECT partition_id FROM worker WHERE id = :id"), {"id": worker_id}
        ).scalar_one()
        connection.execute(
            text(
                "INSERT INTO attempt (sample_id, attempt, worker_id, at_ms, charged, tokens,"
                " reason) SELECT id, attempt, worker_id, :now, false, 0, :why FROM sample"
                " WHERE worker_id = :id AND state = 'running'"
            ),
            {"now": to_ms(now), "why": f"worker lost: {reason}", "id": worker_id},
        )
        lost = connection.execute(
            text(
                "UPDATE sample SET state = 'pending', worker_id = NULL, alone = false,"
                " claim_rank = CASE WHEN held_tokens > 0 THEN 0 ELSE 1 END"
                " WHERE worker_id = :id AND state = 'running'"
            ),
            {"id": worker_id},
        ).rowcount
        deltas = Deltas()
        deltas.moved(SampleState.RUNNING, SampleState.PENDING, lost)
        move(connection, PartitionId(partition_id), deltas)
        connection.execute(
            text(
                "UPDATE worker SET state = 'exited', ended_at_ms = :now, in_flight = 0,"
                " exit_reason = CASE WHEN exit_reason = '' THEN :why ELSE exit_reason END"
                " WHERE id = :id"
            ),
            {"now": to_ms(now), "why": reason, "id": worker_id},
        )
        _forget_reservation(connection, worker_id)
    return lost


def living(ledger: Ledger, run_id: RunId | None = None) -> list[WorkerView]:
    """Return the workers that are not known to be gone, of one run or of all."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT w.* FROM worker w JOIN partition p ON p.id = w.partition_id"
                " WHERE w.state <> 'exited' AND (:run IS NULL OR p.run_id = :run) ORDER BY w.id"
            ),
            {"run": run_id},
        )
        return [_worker_view(row) for row in rows.mappings()]


def last_sign_of(ledger: Ledger, run_id: RunId, lease_s: float) -> datetime | None:
    """Return when a worker of the run was last seen: its end, or else its last lease."""
    with ledger.read() as connection:
        seen_at_ms = connection.execute(
            text(
                "SELECT max(COALESCE(w.ended_at_ms, w.lease_expires_at_ms - :lease_ms))"
                " FROM worker w JOIN partition p ON p.id = w.partition_id WHERE p.run_id = :run"
            ),
            {"run": run_id, "lease_ms": int(lease_s * 1000)},
        ).scalar_one()
    return None if seen_at_ms is None else from_ms(seen_at_ms)


def get_worker(ledger: Ledger, worker_id: WorkerId) -> WorkerView:
    with ledger.read() as connection:
        row = connection.execute(text("SELECT * FROM worker WHERE id = :id"), {"id": worker_id})
        found = row.mappings().first()
    if found is None:
        raise DisownedError(f"worker {worker_id} is not in the ledger")
    return _worker_view(found)


def _worker_view(row: RowMapping) -> WorkerView:
    def moment(name: str) -> datetime | None:
        return None if row[name] is None else from_ms(row[name])

    return WorkerView(
        id=WorkerId(row["id"]),
        partition_id=PartitionId(row["partition_id"]),
        pid=row["pid"],
        state=row["state"],
        desired=row["desired"],
        lease_expires_at=from_ms(row["lease_expires_at_ms"]),
        started_at=from_ms(row["started_at_ms"]),
        exit_reason=row["exit_reason"],
        notice=row["notice"],
        in_flight=row["in_flight"],
        received_tokens=row["received_tokens"],
        last_token_at=moment("last_token_at_ms"),
        waiting_since=moment("waiting_since_at_ms"),
    )
