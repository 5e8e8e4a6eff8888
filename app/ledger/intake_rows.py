"""Rows of the intake: samples in bulk, then what tokenization adds to them.

A partition is `scanning` until every byte of its prompts was read, `scanned` until every sample
that can be sent has its token ids, then `tokenized`. A scan that died is begun again from an
empty partition.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.core.states import SampleState
from app.core.types import PartitionId, SampleId
from app.errors import ConflictError, LedgerError
from app.ledger.counters import Deltas, move
from app.ledger.db import Ledger
from app.seams import Seam, seam

# position, record_index, replica, key, state, prompt_sha256, sampling, reason, max_new_tokens
_Plain = tuple[int, int, int, str, str, str, str | None, str | None, int | None]
# the same, then turn and whether another one follows it
_Turn = tuple[int, int, int, str, str, str, str | None, str | None, int | None, int, bool]
NewSample = _Plain | _Turn

_COLUMNS = (
    "INSERT INTO sample (partition_id, position, record_index, replica, key, state, prompt_sha256,"
    " sampling_json, reason, max_new_tokens, attempt, charged, server_deaths, alone, rid_salt,"
    " not_before_at_ms, held_tokens, output_tokens"
)
_INSERT = f"{_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0)"
_INSERT_TURNS = (
    f"{_COLUMNS}, turn, awaited)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, ?, ?)"
)
_N_PLAIN, _TURN = 9, 10  # how long a plain row is; where the turn stands among the parameters
_ONLY_TURN = (1, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenized:
    """A sample whose prompt ids stand in the partition's token file.

    Of a later turn: the digest of what it asks, and the turn before it.
    """

    sample_id: SampleId
    prompt_tokens: int
    token_offset: int
    max_new_tokens: int | None = None
    prompt_sha256: str | None = None
    parent_id: SampleId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A sample that will never be sent, and why."""

    sample_id: SampleId
    reason: str
    prompt_tokens: int | None = None
    parent_id: SampleId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Untokenized:
    """`parent_id`: of a later turn, the one before it."""

    sample_id: SampleId
    position: int
    record_index: int
    prompt_sha256: str
    max_new_tokens: int | None
    parent_id: SampleId | None = None


def empty_partition(ledger: Ledger, partition_id: PartitionId) -> None:
    """Remove the rows of a scan that died, so that it can begin again."""
    with ledger.write() as connection:
        found = connection.execute(
            text("SELECT intake FROM partition WHERE id = :id"), {"id": partition_id}
        ).scalar_one()
        if found != "scanning":
            raise ConflictError(f"partition {partition_id} is {found}; its samples stay")
        connection.execute(
            text("DELETE FROM sample WHERE partition_id = :id"), {"id": partition_id}
        )
        connection.execute(
            text(
                "UPDATE partition SET n_pending = 0, n_rejected = 0, n_waiting = 0 WHERE id = :id"
            ),
            {"id": partition_id},
        )


def insert_many(ledger: Ledger, partition_id: PartitionId, rows: Sequence[NewSample]) -> None:
    """Insert samples, pending or rejected, and count them."""
    if not rows:
        return
    has_turns = any(len(row) > _N_PLAIN for row in rows)
    parameters: list[tuple[object, ...]] = [
        (partition_id, *row, *(_ONLY_TURN if has_turns and len(row) == _N_PLAIN else ()))
        for row in rows
    ]
    n_rejected = sum(row[4] == SampleState.REJECTED for row in rows)
    deltas = Deltas()
    deltas.states[SampleState.REJECTED] += n_rejected
    deltas.states[SampleState.PENDING] += len(rows) - n_rejected
    deltas.n_waiting += sum(row[_TURN] != 1 for row in parameters) if has_turns else 0
    with ledger.write() as connection:
        connection.exec_driver_sql(_INSERT_TURNS if has_turns else _INSERT, parameters)
        move(connection, partition_id, deltas)
    seam(Seam.INTAKE_BATCH_COMMITTED)


def scanned(ledger: Ledger, partition_id: PartitionId) -> None:
    """Say that every byte of the prompts was read."""
    with ledger.write() as connection:
        connection.execute(
            text(
                "UPDATE partition SET intake = CASE WHEN n_pending > 0 THEN 'scanned'"
                " ELSE 'tokenized' END WHERE id = :id AND intake = 'scanning'"
            ),
            {"id": partition_id},
        )
    seam(Seam.INTAKE_SCANNED)


def untokenized(
    ledger: Ledger, partition_id: PartitionId, after_position: int, limit: int
) -> list[Untokenized]:
    """Return the next pending samples without token ids, in input order; first turns only."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT id, position, record_index, prompt_sha256, max_new_tokens FROM sample"
                " WHERE partition_id = :id AND state = 'pending' AND claim_rank IS NULL"
                " AND turn = 1 AND position > :after ORDER BY position LIMIT :n"
            ),
            {"id": partition_id, "after": after_position, "n": limit},
        ).all()
    return [
        Untokenized(
            sample_id=SampleId(row.id),
            position=row.position,
            record_index=row.record_index,
            prompt_sha256=row.prompt_sha256,
            max_new_tokens=row.max_new_tokens,
        )
        for row in rows
    ]


def record_tokens(
    ledger: Ledger,
    partition_id: PartitionId,
    tokenized: Sequence[Tokenized],
    refused: Sequence[Refused],
    token_file_tokens: int,
    *,
    cap_tokens: int | None = None,
) -> None:
    """Make samples claimable, reject those that cannot be sent, and note the token file's end.

    LedgerError if the partition's limit is no longer `cap_tokens`, by which theirs were decided.
    """
    with ledger.write() as connection:
        _check_cap(connection, partition_id, cap_tokens)
        if tokenized:
            connection.execute(
                text(
                    "UPDATE sample SET claim_rank = 1, prompt_tokens = :prompt_tokens,"
                    " token_offset = :token_offset,"
                    " max_new_tokens = coalesce(:max_new_tokens, max_new_tokens)"
                    " WHERE id = :id AND state = 'pending'"
                ),
                [
                    {
                        "id": entry.sample_id,
                        "prompt_tokens": entry.prompt_tokens,
                        "token_offset": entry.token_offset,
                        "max_new_tokens": entry.max_new_tokens,
                    }
                    for entry in tokenized
                ],
            )
        if refused:
            connection.execute(
                text(
                    "UPDATE sample SET state = 'rejected', reason = :reason,"
                    " prompt_tokens = :prompt_tokens WHERE id = :id AND state = 'pending'"
                ),
                [
                    {
                        "id": entry.sample_id,
                        "reason": entry.reason,
                        "prompt_tokens": entry.prompt_tokens,
                    }
                    for entry in refused
                ],
            )
        deltas = Deltas(n_waiting=-_note_prompted(connection, tokenized, refused))
        deltas.moved(SampleState.PENDING, SampleState.REJECTED, len(refused))
        move(connection, partition_id, deltas)
        connection.execute(
            text(
                "UPDATE partition SET n_tokenized = n_tokenized + :n, token_file_tokens = :end"
                " WHERE id = :id"
            ),
            {"n": len(tokenized), "end": token_file_tokens, "id": partition_id},
        )
    seam(Seam.TOKENS_COMMITTED)


def _check_cap(connection: Connection, partition_id: PartitionId, cap_tokens: int | None) -> None:
    if cap_tokens is None:
        return
    now_is = connection.execute(
        text("SELECT max_new_tokens FROM partition WHERE id = :id"), {"id": partition_id}
    ).scalar_one()
    if now_is != cap_tokens:
        raise LedgerError(f"max_new_tokens was changed to {now_is:,} at this very moment")


def _note_prompted(
    connection: Connection, tokenized: Sequence[Tokenized], refused: Sequence[Refused]
) -> int:
    """Say of later turns what they ask, and that nothing waits for the ones before; how many."""
    asked = [entry for entry in tokenized if entry.parent_id is not None]
    if asked:
        connection.execute(
            text("UPDATE sample SET prompt_sha256 = :sha WHERE id = :id"),
            [{"sha": entry.prompt_sha256, "id": entry.sample_id} for entry in asked],
        )
    parents = (*(one.parent_id for one in asked), *(one.parent_id for one in refused))
    over = [parent_id for parent_id in parents if parent_id is not None]
    if over:
        connection.execute(
            text("UPDATE sample SET awaited = false WHERE id = :id"), [{"id": one} for one in over]
        )
    return len(over)


def all_tokenized(ledger: Ledger, partition_id: PartitionId) -> None:
    with ledger.write() as connection:
        connection.execute(
            text("UPDATE partition SET intake = 'tokenized' WHERE id = :id"), {"id": partition_id}
        )
