"""Samples with their prompt's ids and the place of their valid line, for `longwatch merge`.

Owns the one question. Every sample comes, also one without an answer: a merge counts them all.
"""

from dataclasses import dataclass

from sqlalchemy import text

from app.core.states import SampleState
from app.core.types import PartitionId
from app.ledger.db import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlaces:
    """Where a sample's prompt stands in the token file, and its line in a file of answers.

    `path` is None where there is no answer. Offsets and lengths of the prompt are in tokens.
    """

    position: int
    key: str
    index: int
    replica: int
    state: SampleState
    prompt_sha256: str
    prompt_offset: int | None
    prompt_tokens: int | None
    path: str | None
    offset: int
    n_bytes: int


def places(
    ledger: Ledger, partition_id: PartitionId, after_position: int, limit: int
) -> list[SamplePlaces]:
    """Return the next samples in input order."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT s.position, s.key, s.record_index, s.replica, s.state, s.prompt_sha256,"
                " s.token_offset, s.prompt_tokens, h.path, s.line_offset, s.line_bytes"
                " FROM sample s LEFT JOIN shard h ON h.id = s.shard_id"
                " WHERE s.partition_id = :id AND s.position > :after"
                " ORDER BY s.position LIMIT :n"
            ),
            {"id": partition_id, "after": after_position, "n": limit},
        ).all()
    return [
        SamplePlaces(
            position=row.position,
            key=row.key,
            index=row.record_index,
            replica=row.replica,
            state=SampleState(row.state),
            prompt_sha256=row.prompt_sha256,
            prompt_offset=row.token_offset,
            prompt_tokens=row.prompt_tokens,
            path=row.path,
            offset=row.line_offset or 0,
            n_bytes=row.line_bytes or 0,
        )
        for row in rows
    ]
