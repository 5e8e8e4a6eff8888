"""Samples found by what a person knows of them: their id, its beginning, or the record's number.

Read only. Invariant: each partition is asked one bounded question of one index, so a search costs
the same in a run of a million samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.core.states import SampleState
from app.core.types import PartitionId, SampleId
from app.ledger.browsing import SAMPLE_COLUMNS, SampleEntry, sample_entry
from app.ledger.db import Ledger

_BEYOND = "\U0010ffff"  # behind every key that goes on from a beginning
_MOST_POSITION = 2**53
_BY_KEY = text(
    f"SELECT {SAMPLE_COLUMNS} FROM sample s WHERE s.partition_id = :partition"
    " AND s.key >= :low AND s.key < :high ORDER BY s.key LIMIT :limit"
)
_BY_POSITION = text(
    f"SELECT {SAMPLE_COLUMNS} FROM sample s WHERE s.partition_id = :partition"
    " AND s.position >= :low AND s.position < :high ORDER BY s.position LIMIT :limit"
)
_AT_OR_BEHIND = text(
    "SELECT record_index FROM sample WHERE partition_id = :partition AND position >= :position"
    " ORDER BY position LIMIT 1"
)
_LAST = text("SELECT max(position) FROM sample WHERE partition_id = :partition")
_BEFORE = text(
    "SELECT id FROM sample WHERE partition_id = :partition AND position < :position"
    " ORDER BY position DESC LIMIT 1"
)
_BEHIND = text(
    "SELECT id FROM sample WHERE partition_id = :partition AND position > :position"
    " ORDER BY position LIMIT 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What a search found, those with the very id first. `has_more`: some were left out."""

    samples: tuple[SampleEntry, ...]
    has_more: bool


def search(
    ledger: Ledger,
    partition_ids: Sequence[PartitionId],
    q: str,
    *,
    state: SampleState | None,
    replicas: int,
    limit: int,
) -> Hits:
    """Return samples whose id is `q` or begins with it, or whose record has that number.

    `replicas` is how many samples a record has. At most `limit` of each partition are looked at.
    """
    found: dict[SampleId, SampleEntry] = {}
    has_more = False
    with ledger.read() as connection:
        for partition_id in partition_ids:
            where = {"partition": partition_id, "limit": limit + 1}
            keys = {"low": q, "high": q + _BEYOND}
            rows = list(connection.execute(_BY_KEY, {**where, **keys}).all())
            has_more = has_more or len(rows) > limit
            if (record := _record_number(q)) is not None:
                places = {
                    "low": _first_place(connection, partition_id, record, replicas),
                    "high": _first_place(connection, partition_id, record + 1, replicas),
                }
                rows += connection.execute(_BY_POSITION, {**where, **places}).all()
            for row in rows:
                found.setdefault(SampleId(row.id), sample_entry(row))
    hits = [each for each in found.values() if state in (None, each.state)]
    hits.sort(key=lambda each: (each.key != q, str(each.index) != q, each.key, each.id))
    return Hits(samples=tuple(hits[:limit]), has_more=has_more or len(hits) > limit)


def _first_place(
    connection: Connection, partition_id: PartitionId, record: int, replicas: int
) -> int:
    """Return the first position at or behind which nothing is of an earlier record.

    Records stand in order, none before `record * replicas`; turns of conversations move what is
    behind them further, and then it is looked for by halves.
    """

    def is_behind(position: int) -> bool:
        where = {"partition": partition_id, "position": position}
        found = connection.execute(_AT_OR_BEHIND, where).scalar()
        return found is None or found >= record

    low = record * replicas
    if is_behind(low):
        return low
    high = connection.execute(_LAST, {"partition": partition_id}).scalar_one() + 1
    while high - low > 1:
        middle = (low + high) // 2
        if is_behind(middle):
            high = middle
        else:
            low = middle
    return int(high)


def _record_number(q: str) -> int | None:
    plain = q.replace(",", "")
    is_number = plain.isascii() and plain.isdecimal() and len(plain) <= len(str(_MOST_POSITION))
    return int(plain) if is_number and int(plain) < _MOST_POSITION else None


def neighbours(
    ledger: Ledger, partition_id: PartitionId, position: int
) -> tuple[SampleId | None, SampleId | None]:
    """Return the samples before and behind a position of a partition, None where there is none."""
    where = {"partition": partition_id, "position": position}
    with ledger.read() as connection:
        before = connection.execute(_BEFORE, where).scalar()
        behind = connection.execute(_BEHIND, where).scalar()
    return (
        None if before is None else SampleId(before),
        None if behind is None else SampleId(behind),
    )
