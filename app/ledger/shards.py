"""Shard rows: which files hold answer lines, how far they are committed, what replaced them.

A row is written before the first byte of its file, so that a file of ours is never unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import RowMapping, text

from app.clock import to_ms
from app.core.types import PartitionId, SampleId, ShardId, WorkerId
from app.core.views import ShardView
from app.errors import LedgerError
from app.ledger.db import Ledger
from app.seams import Seam, seam


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePlace:
    """Where the valid line of a sample stands."""

    sample_id: SampleId
    shard_id: ShardId
    path: str
    offset: int
    n_bytes: int


def open_shard(
    ledger: Ledger, partition_id: PartitionId, worker_id: WorkerId | None, path: str
) -> ShardId:
    """Write the row of a new file; without a worker it holds adopted answers."""
    with ledger.write() as connection:
        shard_id = connection.execute(
            text(
                "INSERT INTO shard (partition_id, worker_id, kind, path, committed_bytes, inode)"
                " VALUES (:partition, :worker, 'shard', :path, 0, 0) RETURNING id"
            ),
            {"partition": partition_id, "worker": worker_id, "path": path},
        ).scalar_one()
    return ShardId(shard_id)


def present(ledger: Ledger, partition_id: PartitionId) -> list[ShardView]:
    """Return the partition's files that still count, sealed output included."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT * FROM shard WHERE partition_id = :id AND removed_at_ms IS NULL ORDER BY id"
            ),
            {"id": partition_id},
        )
        return [_view(row) for row in rows.mappings()]


def _view(row: RowMapping) -> ShardView:
    return ShardView(
        id=ShardId(row["id"]),
        partition_id=PartitionId(row["partition_id"]),
        worker_id=None if row["worker_id"] is None else WorkerId(row["worker_id"]),
        kind=row["kind"],
        path=row["path"],
        committed_bytes=row["committed_bytes"],
        inode=row["inode"],
    )


def valid_lines(
    ledger: Ledger, partition_id: PartitionId, after_position: int, limit: int
) -> list[tuple[int, LinePlace]]:
    """Return (position, place) of the next valid lines in input order."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT s.id, s.position, s.shard_id, s.line_offset, s.line_bytes, h.path"
                " FROM sample s JOIN shard h ON h.id = s.shard_id"
                " WHERE s.partition_id = :id AND s.position > :after"
                " ORDER BY s.position LIMIT :n"
            ),
            {"id": partition_id, "after": after_position, "n": limit},
        ).all()
    return [
        (
            row.position,
            LinePlace(
                sample_id=SampleId(row.id),
                shard_id=ShardId(row.shard_id),
                path=row.path,
                offset=row.line_offset,
                n_bytes=row.line_bytes,
            ),
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A sealed output: the file, and where each valid line stands in it."""

    path: str
    size_bytes: int
    inode: int
    places: Sequence[tuple[SampleId, int, int]]


def record_seal(
    ledger: Ledger, partition_id: PartitionId, sealed: Sealed, now: datetime
) -> list[ShardView]:
    """Point every valid line to the sealed file; return the files that are now spare.

    Raises LedgerError if a sample of the partition was opened again meanwhile.
    """
    spare = present(ledger, partition_id)
    with ledger.write() as connection:
        open_samples = connection.execute(
            text("SELECT n_running FROM partition WHERE id = :id"), {"id": partition_id}
        ).scalar_one()
        if open_samples:
            raise LedgerError(f"partition {partition_id} runs again; it is sealed later")
        shard_id = connection.execute(
            text(
                "INSERT INTO shard (partition_id, kind, path, committed_bytes, inode)"
                " VALUES (:partition, 'sealed', :path, :size, :inode) RETURNING id"
            ),
            {
                "partition": partition_id,
                "path": sealed.path,
                "size": sealed.size_bytes,
                "inode": sealed.inode,
            },
        ).scalar_one()
        if sealed.places:
            connection.execute(
                text(
                    "UPDATE sample SET shard_id = :shard, line_offset = :offset, line_bytes = :n"
                    " WHERE id = :id"
                ),
                [
                    {"shard": shard_id, "offset": offset, "n": n_bytes, "id": sample_id}
                    for sample_id, offset, n_bytes in sealed.places
                ],
            )
        connection.execute(
            text(
                "UPDATE shard SET removed_at_ms = :now"
                " WHERE partition_id = :id AND id <> :new AND removed_at_ms IS NULL"
            ),
            {"now": to_ms(now), "id": partition_id, "new": shard_id},
        )
        connection.execute(
            text("UPDATE partition SET sealed_at_ms = :now WHERE id = :id"),
            {"now": to_ms(now), "id": partition_id},
        )
    seam(Seam.SEAL_COMMITTED)
    return [view for view in spare if view.path != sealed.path]


def is_replaced(ledger: Ledger, path: str) -> bool:
    """Return whether the ledger knows the file and knows that a sealed output replaced it."""
    with ledger.read() as connection:
        found = connection.execute(
            text(
                "SELECT count(*) FROM shard WHERE path = :path AND removed_at_ms IS NOT NULL"
                " AND kind = 'shard'"
            ),
            {"path": path},
        ).scalar_one()
    return bool(found)
