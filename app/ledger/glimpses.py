"""What a partition's own page shows of its samples: the answers furthest on, and why some failed.

Reads only, each a bounded piece of one index, so that it costs the same in a partition of a million
samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from app.core.types import PartitionId
from app.ledger.browsing import SAMPLE_COLUMNS, SampleEntry, sample_entry
from app.ledger.counters import kept_states
from app.ledger.db import Ledger

MOST_LOOKED_AT = 2_000

_FURTHEST = text(
    f"SELECT {SAMPLE_COLUMNS} FROM sample s WHERE s.state IN ({kept_states()})"
    " AND s.partition_id = :partition ORDER BY s.position DESC LIMIT :n"
)
_REASONS = text(
    "SELECT state, reason, count(*) AS n FROM (SELECT state, coalesce(reason, '') AS reason"
    " FROM sample WHERE state IN ('failed', 'rejected', 'empty', 'suspect')"
    " AND partition_id = :partition LIMIT :most) AS looked"
    " GROUP BY state, reason ORDER BY count(*) DESC, state, reason LIMIT :n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why so many samples are in a state that may need somebody."""

    state: str
    reason: str
    n: int


def furthest(ledger: Ledger, partition_id: PartitionId, n: int) -> Sequence[SampleEntry]:
    """Return the answered samples that stand last in the order of the input, the last one first."""
    with ledger.read() as connection:
        rows = connection.execute(_FURTHEST, {"partition": partition_id, "n": n}).all()
    return [sample_entry(row) for row in rows]


def reasons(ledger: Ledger, partition_id: PartitionId, n: int) -> Sequence[Reason]:
    """Return the commonest reasons of samples that failed, were rejected, are empty or suspect.

    Of at most 2,000 such samples, which is as many as are looked at.
    """
    values = {"partition": partition_id, "most": MOST_LOOKED_AT, "n": n}
    with ledger.read() as connection:
        rows = connection.execute(_REASONS, values).all()
    return [Reason(state=row.state, reason=row.reason, n=row.n) for row in rows]
