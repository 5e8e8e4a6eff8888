"""Finished work of an earlier script in the ledger: which samples it is of, and their settling.

Called under the home's lock, for partitions without a living worker. A shard of its own, without a
worker, is opened first; then each batch is one transaction, after its lines are on the disk.
Invariant: only a pending sample that has no line is moved, and each row of a batch must be one, or
nothing of the batch is recorded. What a half-written answer of ours held is wasted.

Adopted tokens count as received, so that received = kept + wasted + held holds; that they were not
received now is told by the measure `adopted`, for whoever draws a speed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Row, bindparam, text

from app.clock import to_ms
from app.core.adopting import Sought
from app.core.spread import Elsewhere, Measure, measured
from app.core.states import SampleState
from app.core.types import PartitionId, SampleId, ShardId
from app.errors import ConflictError
from app.ledger import checkpoints, measures
from app.ledger.activity import Deed, note
from app.ledger.counters import Deltas, move
from app.ledger.db import Ledger
from app.seams import Seam, seam

_COLUMNS = (
    "SELECT s.id, s.key, s.record_index, s.replica, s.state, s.shard_id, s.prompt_sha256,"
    " s.prompt_tokens, s.held_tokens, coalesce(s.max_new_tokens, p.max_new_tokens) AS limit_tokens"
    " FROM sample s JOIN partition p ON p.id = s.partition_id WHERE s.partition_id = :partition"
    " AND s.turn = 1"  # a later turn stands behind the answers of this run, not of another
)
_BY_KEY = text(_COLUMNS + " AND s.key IN :wanted").bindparams(bindparam("wanted", expanding=True))
_BY_POSITION = text(_COLUMNS + " AND s.position IN :wanted").bindparams(
    bindparam("wanted", expanding=True)
)
_SETTLE = text(
    "UPDATE sample SET state = :state, worker_id = NULL, alone = false, held_tokens = 0,"
    " output_tokens = :output_tokens, shard_id = :shard, line_offset = :offset,"
    " line_bytes = :n_bytes, finish_reason = :finish_reason, flags = :flags, reason = NULL"
    " WHERE id = :id AND partition_id = :partition AND state = 'pending' AND shard_id IS NULL"
    " AND held_tokens = :held AND prompt_sha256 = :prompt_sha256"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """One adopted answer: its sample as it was read, its line's place, and what it becomes."""

    sample: Sought
    state: SampleState
    output_tokens: int
    finish_reason: str
    flags: tuple[str, ...]
    offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The file that the lines of a batch stand in, as long as it is with them."""

    id: ShardId
    n_bytes: int
    inode: int


def by_key(
    ledger: Ledger, partition_id: PartitionId, keys: Sequence[str]
) -> dict[tuple[str, int], list[Sought]]:
    """Return the samples of these ids, by (id, replica); more than one where an id is doubled."""
    with ledger.read() as connection:
        rows = connection.execute(_BY_KEY, {"partition": partition_id, "wanted": list(keys)}).all()
    found: dict[tuple[str, int], list[Sought]] = {}
    for row in rows:
        found.setdefault((row.key, row.replica), []).append(_sought(row))
    return found


def by_index(
    ledger: Ledger, partition_id: PartitionId, records: Sequence[tuple[int, int]], n_replicas: int
) -> dict[tuple[int, int], Sought]:
    """Return the samples of these (record number, replica)."""
    positions = [index * n_replicas + replica for index, replica in records]
    with ledger.read() as connection:
        rows = connection.execute(
            _BY_POSITION, {"partition": partition_id, "wanted": positions}
        ).all()
    return {(row.record_index, row.replica): _sought(row) for row in rows}


def _sought(row: Row[tuple[object, ...]]) -> Sought:
    return Sought(
        sample_id=SampleId(row.id),
        key=row.key,
        index=row.record_index,
        replica=row.replica,
        state=SampleState(row.state),
        has_line=row.shard_id is not None,
        prompt_sha256=row.prompt_sha256,
        prompt_tokens=row.prompt_tokens,
        limit_tokens=row.limit_tokens,
        held_tokens=row.held_tokens,
    )


def n_shards(ledger: Ledger, partition_id: PartitionId) -> int:
    """Return how many files of the partition were ever opened: a number that no name bears yet."""
    with ledger.read() as connection:
        n: int = connection.execute(
            text("SELECT count(*) FROM shard WHERE partition_id = :id"), {"id": partition_id}
        ).scalar_one()
    return n


def settle_adopted(
    ledger: Ledger,
    partition_id: PartitionId,
    batch: Sequence[Settling],
    shard: Shard,
    deed: Deed,
    now: datetime,
) -> None:
    """Make the lines the answers of their samples; ConflictError has changed nothing."""
    deltas, now_ms = Deltas(), to_ms(now)
    values: list[tuple[Measure | Elsewhere, int]] = []
    for each in batch:
        n = each.output_tokens
        deltas.moved(SampleState.PENDING, each.state)
        deltas.received_tokens += n
        deltas.kept_tokens += n
        deltas.held_tokens -= each.sample.held_tokens
        deltas.wasted_tokens += each.sample.held_tokens
        values += measured(n, each.finish_reason, each.sample.prompt_tokens)
        values.append((Elsewhere.ADOPTED, n))
    with ledger.write() as connection:
        rows = [_row(each, partition_id, shard) for each in batch]
        n_moved = connection.execute(_SETTLE, rows).rowcount if rows else 0
        if n_moved != len(rows):
            raise ConflictError(
                f"{len(rows) - n_moved} of {len(rows)} samples are not as they were read",
                hint="somebody else changes this run; nothing of them was recorded",
            )
        checkpoints.drop(connection, [each.sample.sample_id for each in batch])
        move(connection, partition_id, deltas)
        measures.add(connection, partition_id, values, now_ms)
        connection.execute(
            text("UPDATE shard SET committed_bytes = :n, inode = :inode WHERE id = :id"),
            {"n": shard.n_bytes, "inode": shard.inode, "id": shard.id},
        )
        connection.execute(
            text("UPDATE partition SET sealed_at_ms = NULL WHERE id = :id"), {"id": partition_id}
        )
        note(connection, deed, now)
        seam(Seam.ADOPT_BEFORE_COMMIT)
    seam(Seam.ADOPT_COMMITTED)


def _row(each: Settling, partition_id: PartitionId, shard: Shard) -> Mapping[str, object]:
    return {
        "state": each.state,
        "output_tokens": each.output_tokens,
        "shard": shard.id,
        "offset": each.offset,
        "n_bytes": each.n_bytes,
        "finish_reason": each.finish_reason,
        "flags": ",".join(each.flags) or None,
        "id": each.sample.sample_id,
        "partition": partition_id,
        "held": each.sample.held_tokens,
        "prompt_sha256": each.sample.prompt_sha256,
    }
