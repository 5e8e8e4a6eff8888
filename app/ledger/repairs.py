"""What recovery may change: adopt a line, let a lost line go, prove the counters anew.

Called under the home's lock, for partitions without a living worker. Each function is one
transaction; after a crash between two of them the same repair is found and done again.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, text

from app.core.adopting import FLAG_ADOPTED
from app.core.reconcile import SampleFact
from app.core.spread import Elsewhere, measured
from app.core.states import KEPT, SampleState
from app.core.types import PartitionId, SampleId, ShardId, WorkerId
from app.ledger import checkpoints, measures
from app.ledger.counters import WAITING, Deltas, kept_states, move
from app.ledger.db import Ledger
from app.ledger.turns import wait_again
from app.seams import Seam, seam


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """A whole line that the ledger did not know of, as it describes itself; no times are known."""

    sample_id: SampleId
    shard_id: ShardId
    offset: int
    n_bytes: int
    output_tokens: int
    state: SampleState
    finish_reason: str
    flags: str | None
    prompt_tokens: int
    ended_at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningAttempt:
    sample_id: SampleId
    attempt: int
    salt: int


def running_attempts(ledger: Ledger, worker_id: WorkerId) -> dict[SampleId, RunningAttempt]:
    """Return what a worker had in flight, by sample."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT id, attempt, rid_salt FROM sample"
                " WHERE worker_id = :id AND state = 'running'"
            ),
            {"id": worker_id},
        ).all()
    return {
        SampleId(row.id): RunningAttempt(
            sample_id=SampleId(row.id), attempt=row.attempt, salt=row.rid_salt
        )
        for row in rows
    }


def sample_facts(
    ledger: Ledger, partition_id: PartitionId, shard_id: ShardId
) -> dict[SampleId, SampleFact]:
    """Return what the ledger says of every sample of the partition, seen from one file."""
    with ledger.read() as connection:
        rows = connection.execute(
            text("SELECT id, state, prompt_sha256, shard_id FROM sample WHERE partition_id = :id"),
            {"id": partition_id},
        ).all()
    return {
        SampleId(row.id): SampleFact(
            sample_id=SampleId(row.id),
            state=SampleState(row.state),
            prompt_sha256=row.prompt_sha256,
            points_here=row.shard_id == shard_id,
            points_elsewhere=row.shard_id is not None and row.shard_id != shard_id,
        )
        for row in rows
    }


def adopt(
    ledger: Ledger,
    partition_id: PartitionId,
    lines: Sequence[Adopted],
    committed: tuple[ShardId, int, int],
) -> None:
    """Make lines the answers of open samples, and note the file's (shard, bytes, inode)."""
    with ledger.write() as connection:
        for line in lines:
            if not _adopt_one(connection, partition_id, line):
                continue
            values = measured(line.output_tokens, line.finish_reason, line.prompt_tokens)
            is_from_elsewhere = FLAG_ADOPTED in (line.flags or "").split(",")
            also = [(Elsewhere.ADOPTED, line.output_tokens)] if is_from_elsewhere else []
            measures.add(connection, partition_id, [*values, *also], line.ended_at_ms)
        shard_id, size_bytes, inode = committed
        connection.execute(
            text("UPDATE shard SET committed_bytes = :n, inode = :inode WHERE id = :id"),
            {"n": size_bytes, "inode": inode, "id": shard_id},
        )
        seam(Seam.RECOVERY_COMMITTED)


def _adopt_one(connection: Connection, partition_id: PartitionId, line: Adopted) -> bool:
    """Adopt a line; False for one of a turn that waits: what it stood behind is gone."""
    before = connection.execute(
        text(
            "SELECT state, held_tokens, output_tokens, shard_id,"
            " turn > 1 AND token_offset IS NULL AS waits FROM sample WHERE id = :id"
        ),
        {"id": line.sample_id},
    ).one()
    if before.waits:
        return False
    connection.execute(
        text(
            "UPDATE sample SET state = :state, worker_id = NULL, alone = false, held_tokens = 0,"
            " output_tokens = :output_tokens, shard_id = :shard_id, line_offset = :offset,"
            " line_bytes = :n_bytes, finish_reason = :finish_reason, flags = :flags,"
            " reason = NULL WHERE id = :sample_id"
        ),
        asdict(line),
    )
    copied = checkpoints.line_tokens_of(connection, line.sample_id)
    checkpoints.drop(connection, [line.sample_id])
    deltas = Deltas()
    state = SampleState(before.state)
    if state in KEPT:  # its own line is gone, and this one takes its place
        deltas.moved(state, SampleState.PENDING)
        state = SampleState.PENDING
    deltas.moved(state, line.state)
    previous = before.output_tokens if before.shard_id is not None else 0
    # A line from a file that was brought back may be older, and shorter, than what is held.
    surplus = max(0, before.held_tokens - line.output_tokens)
    deltas.held_tokens -= before.held_tokens - copied
    deltas.kept_tokens += line.output_tokens - previous
    deltas.wasted_tokens += previous - copied + surplus
    deltas.received_tokens += line.output_tokens - before.held_tokens + surplus
    move(connection, partition_id, deltas)
    return True


def move_lines(
    ledger: Ledger, places: Sequence[tuple[SampleId, int, int]], shard_id: ShardId
) -> None:
    """Note where lines of a rewritten file stand: (sample, offset, bytes)."""
    if not places:
        return
    with ledger.write() as connection:
        connection.execute(
            text(
                "UPDATE sample SET line_offset = :offset, line_bytes = :n"
                " WHERE id = :id AND shard_id = :shard"
            ),
            [
                {"id": sample_id, "offset": offset, "n": n_bytes, "shard": shard_id}
                for sample_id, offset, n_bytes in places
            ],
        )


def lose_lines(ledger: Ledger, partition_id: PartitionId, sample_ids: Sequence[SampleId]) -> None:
    """Put kept samples back whose line is gone; what no checkpoint holds of it is wasted.

    Turns behind them wait for the new answer: theirs stood behind the one that is gone.
    """
    with ledger.write() as connection:
        for sample_id in sample_ids:
            row = connection.execute(
                text("SELECT state, output_tokens FROM sample WHERE id = :id"), {"id": sample_id}
            ).one()
            connection.execute(
                text(
                    "UPDATE sample SET state = CASE WHEN state IN (" + kept_states() + ") THEN"
                    " 'pending' ELSE state END, shard_id = NULL, line_offset = NULL,"
                    " line_bytes = NULL, output_tokens = 0, finish_reason = NULL, flags = NULL,"
                    " claim_rank = CASE WHEN token_offset IS NULL THEN NULL"
                    " WHEN held_tokens > 0 THEN 0 ELSE 1 END,"
                    " reason = 'its line was gone at a start' WHERE id = :id"
                ),
                {"id": sample_id},
            )
            copied = checkpoints.line_tokens_of(connection, sample_id)
            checkpoints.disown_line(connection, sample_id)
            deltas = Deltas()
            if row.state in KEPT:
                deltas.moved(SampleState(row.state), SampleState.PENDING)
            deltas.kept_tokens -= row.output_tokens
            deltas.held_tokens += copied
            deltas.wasted_tokens += row.output_tokens - copied
            move(connection, partition_id, deltas)
            wait_again(connection, partition_id, [sample_id])
        connection.execute(
            text("UPDATE partition SET sealed_at_ms = NULL WHERE id = :id"), {"id": partition_id}
        )


def rebuild(ledger: Ledger, partition_id: PartitionId) -> None:
    """Count the partition anew from its rows. What was received and is nowhere, was wasted."""
    counts = ", ".join(
        f"n_{state} = (SELECT count(*) FROM sample WHERE partition_id = :id AND state = '{state}')"
        for state in SampleState
    )
    with ledger.write() as connection:
        connection.execute(
            text(
                f"UPDATE partition SET {counts}, n_waiting = (SELECT count(*) FROM sample"
                f"   WHERE partition_id = :id AND {WAITING}),"
                " kept_tokens = (SELECT coalesce(sum(output_tokens), 0) FROM sample"
                "   WHERE partition_id = :id AND shard_id IS NOT NULL),"
                " held_tokens = (SELECT coalesce(sum(held_tokens), 0) FROM sample"
                "   WHERE partition_id = :id) - (SELECT coalesce(sum(length(c.ids)), 0) / 4"
                "   FROM sample s JOIN checkpoint c ON c.sample_id = s.id"
                "   WHERE s.partition_id = :id AND s.held_tokens > 0 AND c.attempt = 0)"
                " WHERE id = :id"
            ),
            {"id": partition_id},
        )
        connection.execute(
            text(
                "UPDATE partition SET"
                " received_tokens = max(received_tokens, kept_tokens + held_tokens),"
                " wasted_tokens = max(received_tokens, kept_tokens + held_tokens)"
                "   - kept_tokens - held_tokens WHERE id = :id"
            ),
            {"id": partition_id},
        )
