"""Turns that wait for the answer to an earlier one: which may be asked now, which never will be.

The turns of a conversation stand at neighbouring positions. A turn is `awaited` as long as the next
one is pending without a prompt, so whatever ends a turn brings it into a small index, and nothing
that ends one needs to know. Invariant: what stands behind a turn has a prompt or an answer only if
that turn is *ok*; the answer was asked behind the very line that is its valid one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, bindparam, text

from app.core.states import SampleState
from app.core.types import PartitionId, SampleId, ShardId
from app.ledger import checkpoints
from app.ledger.counters import WAITING, Deltas, move
from app.ledger.db import Ledger
from app.ledger.intake_rows import Untokenized
from app.ledger.shards import LinePlace
from app.seams import Seam, seam

_DUE = text(
    "SELECT p.id AS parent_id, p.turn, p.state, p.reason, p.flags, c.id, c.position,"
    " c.record_index, c.prompt_sha256, c.max_new_tokens FROM sample p CROSS JOIN sample c"
    " WHERE p.partition_id = :id AND p.awaited AND p.state NOT IN ('pending', 'running')"
    " AND c.partition_id = p.partition_id AND c.position = p.position + 1"
    " ORDER BY p.position LIMIT :n"
)
_WAITED_FOR = text(
    "SELECT p.id FROM partition p WHERE EXISTS"
    " (SELECT 1 FROM sample s WHERE s.partition_id = p.id AND s.awaited)"
)
_EARLIER = text(
    "SELECT s.id, s.position, s.turn, s.prompt_tokens, s.token_offset, s.prompt_sha256,"
    " s.output_tokens, s.shard_id, s.line_offset, s.line_bytes, h.path"
    " FROM sample s JOIN shard h ON h.id = s.shard_id"
    " WHERE s.partition_id = :id AND s.position >= :low AND s.position < :high"
    " AND s.state = 'ok' ORDER BY s.position"
)
# A turn and those behind it, in order.
_FROM = (
    "WITH RECURSIVE line(id, partition_id, position) AS (SELECT id, partition_id, position"
    " FROM sample WHERE id = :id UNION ALL SELECT s.id, s.partition_id, s.position FROM line l"
    " JOIN sample s ON s.partition_id = l.partition_id AND s.position = l.position + 1"
    " WHERE s.turn > 1)"
)
_NOT_AWAITED = text(
    "UPDATE sample SET awaited = false WHERE id = :id AND awaited AND state = :state"
)
_REJECT = text(
    "UPDATE sample SET state = 'rejected', reason = :reason, awaited = false WHERE state ="
    f" 'pending' AND id <> :id AND id IN ({_FROM} SELECT id FROM line)"
)
_LINE = text(
    f"{_FROM} SELECT s.id, s.state, s.held_tokens, s.output_tokens, s.shard_id, s.token_offset"
    " FROM line l JOIN sample s ON s.id = l.id ORDER BY s.position"
)
_RESET = text(
    "UPDATE sample SET state = 'pending', claim_rank = NULL, prompt_sha256 = '',"
    " prompt_tokens = NULL, token_offset = NULL, worker_id = NULL, alone = false, charged = 0,"
    " server_deaths = 0, not_before_at_ms = 0, held_tokens = 0, output_tokens = 0,"
    " shard_id = NULL, line_offset = NULL, line_bytes = NULL, finish_reason = NULL, flags = NULL,"
    " reason = NULL WHERE id = :id"
)
_PENDING = text("SELECT id FROM sample WHERE state = 'pending' AND id IN :ids").bindparams(
    bindparam("ids", expanding=True)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A turn whose end is known and not yet followed; `next` is the turn that waits for it."""

    parent_id: SampleId
    turn: int
    state: SampleState
    reason: str | None
    flags: str
    next: Untokenized


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An answered turn: where its prompt's ids and its line stand."""

    turn: int
    prompt_sha256: str
    prompt_tokens: int
    token_offset: int
    output_tokens: int
    place: LinePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """The turns behind one that is over in this state, and why they are not asked."""

    parent_id: SampleId
    state: SampleState
    reason: str


def waited_for(ledger: Ledger) -> frozenset[PartitionId]:
    """Return the partitions in which a turn waits for an earlier one."""
    with ledger.read() as connection:
        return frozenset(PartitionId(each) for each in connection.execute(_WAITED_FOR).scalars())


def due(ledger: Ledger, partition_id: PartitionId, limit: int) -> list[Due]:
    """Return turns that are over and awaited, in input order."""
    with ledger.read() as connection:
        rows = connection.execute(_DUE, {"id": partition_id, "n": limit}).mappings().all()
    return [_due(row) for row in rows]


def _due(row: RowMapping) -> Due:
    parent_id = SampleId(row["parent_id"])
    waiting = Untokenized(
        sample_id=SampleId(row["id"]),
        position=row["position"],
        record_index=row["record_index"],
        prompt_sha256=row["prompt_sha256"],
        max_new_tokens=row["max_new_tokens"],
        parent_id=parent_id,
    )
    return Due(
        parent_id=parent_id,
        turn=row["turn"],
        state=SampleState(row["state"]),
        reason=row["reason"],
        flags=row["flags"] or "",
        next=waiting,
    )


def earlier(ledger: Ledger, partition_id: PartitionId, one: Due) -> list[Earlier]:
    """Return the answered turns before the one that waits, the first one first."""
    high = one.next.position
    with ledger.read() as connection:
        rows = connection.execute(
            _EARLIER, {"id": partition_id, "low": high - one.turn, "high": high}
        ).mappings()
        return [_earlier(row) for row in rows]


def _earlier(row: RowMapping) -> Earlier:
    return Earlier(
        turn=row["turn"],
        prompt_sha256=row["prompt_sha256"],
        prompt_tokens=row["prompt_tokens"],
        token_offset=row["token_offset"],
        output_tokens=row["output_tokens"],
        place=LinePlace(
            sample_id=SampleId(row["id"]),
            shard_id=ShardId(row["shard_id"]),
            path=row["path"],
            offset=row["line_offset"],
            n_bytes=row["line_bytes"],
        ),
    )


def reject_rest(ledger: Ledger, partition_id: PartitionId, rests: Sequence[Rest]) -> int:
    """Reject what stands behind turns that are still over as they were seen; return how many."""
    n = 0
    with ledger.write() as connection:
        for rest in rests:
            values = {"id": rest.parent_id, "state": rest.state, "reason": rest.reason}
            is_so = connection.execute(_NOT_AWAITED, values).rowcount
            if is_so:
                n += connection.execute(_REJECT, values).rowcount
        deltas = Deltas(n_waiting=-n)
        deltas.moved(SampleState.PENDING, SampleState.REJECTED, n)
        move(connection, partition_id, deltas)
    seam(Seam.TURNS_REJECTED)
    return n


def wait_again(
    connection: Connection, partition_id: PartitionId, ids: Iterable[SampleId | int]
) -> None:
    """Let all turns behind these wait, as far as these are pending; what they had is wasted.

    Their answers would stand behind one that is no longer in the output.
    """
    pending = connection.execute(_PENDING, {"ids": list(ids)}).scalars().all()
    deltas = Deltas()
    n_lost = 0
    for sample_id in pending:
        line = connection.execute(_LINE, {"id": sample_id}).mappings().all()
        for row in line[1:]:
            n_lost += row["token_offset"] is not None
            _reset(connection, row, deltas)
        if len(line) > 1:
            connection.execute(
                text("UPDATE sample SET awaited = true WHERE id = :id"),
                [{"id": row["id"]} for row in line[:-1]],
            )
    move(connection, partition_id, deltas)
    if n_lost:
        connection.execute(
            text("UPDATE partition SET n_tokenized = n_tokenized - :n WHERE id = :id"),
            {"n": n_lost, "id": partition_id},
        )


def _reset(connection: Connection, row: RowMapping, deltas: Deltas) -> None:
    sample_id, state = SampleId(row["id"]), SampleState(row["state"])
    if state is not SampleState.PENDING:
        deltas.moved(state, SampleState.PENDING)
    if state is not SampleState.PENDING or row["token_offset"] is not None:
        deltas.n_waiting += 1
    made = row["held_tokens"] - checkpoints.line_tokens_of(connection, sample_id)
    kept = row["output_tokens"] if row["shard_id"] is not None else 0
    deltas.held_tokens -= made
    deltas.kept_tokens -= kept
    deltas.wasted_tokens += made + kept
    checkpoints.drop(connection, [sample_id])
    connection.execute(_RESET, {"id": sample_id})


def wait_for_ids(connection: Connection, partition_id: PartitionId) -> None:
    """Let turns wait whose prompt's ids were taken back: the turn before them is awaited again."""
    connection.execute(
        text(
            "UPDATE sample SET awaited = true WHERE partition_id = :id AND state = 'ok'"
            " AND NOT awaited AND EXISTS (SELECT 1 FROM sample n"
            " WHERE n.partition_id = sample.partition_id AND n.position = sample.position + 1"
            " AND n.turn > 1 AND n.state = 'pending' AND n.token_offset IS NULL)"
        ),
        {"id": partition_id},
    )
    connection.execute(
        text(
            "UPDATE partition SET n_waiting = (SELECT count(*) FROM sample"
            f" WHERE partition_id = :id AND {WAITING}) WHERE id = :id"
        ),
        {"id": partition_id},
    )
