"""Measures of answers that ended: counts in buckets per partition, kind and hour.

Written in the settle transaction only, so as exactly once as the counters; a ledger from before
has none, and its spreads are empty. Every read goes down the primary key and costs hours times
buckets, whatever the number of samples.
Invariant: `output` counts each answer that was settled, or adopted at a start, since there are
measures; `output_cut` counts some of them, and so does `adopted`. What becomes of an answer later
takes nothing away.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, text

from app.core.spread import Elsewhere, Measure, Spread, bucket_of
from app.core.types import PartitionId, RunId
from app.ledger.db import Ledger

HOUR_MS = 3_600_000

_ADD = text(
    "INSERT INTO measure (partition_id, kind, hour_at_ms, bucket, n, total)"
    " VALUES (:partition_id, :kind, :hour_at_ms, :bucket, :n, :total)"
    " ON CONFLICT (partition_id, kind, hour_at_ms, bucket)"
    " DO UPDATE SET n = measure.n + excluded.n, total = measure.total + excluded.total"
)
_SPREADS = text(
    "SELECT kind, bucket, sum(n) AS n, sum(total) AS total FROM measure"
    " WHERE partition_id = :partition_id AND kind IN :kinds AND hour_at_ms >= :since"
    " GROUP BY kind, bucket"
).bindparams(bindparam("kinds", expanding=True))
_OF_RUN = text(
    "SELECT m.bucket, sum(m.n) AS n, sum(m.total) AS total FROM partition p"
    " JOIN measure m ON m.partition_id = p.id"
    " WHERE p.run_id = :run_id AND m.kind = :kind AND m.hour_at_ms >= :since GROUP BY m.bucket"
)
_BY_HOUR = text(
    "SELECT hour_at_ms, bucket, n, total FROM measure"
    " WHERE partition_id = :partition_id AND kind = :kind AND hour_at_ms >= :since"
    " ORDER BY hour_at_ms, bucket"
)


def add(
    connection: Connection,
    partition_id: PartitionId,
    values: Iterable[tuple[Measure | Elsewhere, int]],
    at_ms: int | None,
) -> None:
    """Count the values in the hour of `at_ms`, in the caller's transaction.

    Without a moment (a line that does not say when it ended) nothing is counted.
    """
    counts: Counter[tuple[Measure | Elsewhere, int]] = Counter()
    totals: Counter[tuple[Measure | Elsewhere, int]] = Counter()
    for kind, value in values:
        place = (kind, bucket_of(value))
        counts[place] += 1
        totals[place] += value
    if at_ms is None or not counts:
        return
    connection.execute(
        _ADD,
        [
            {
                "partition_id": partition_id,
                "kind": kind,
                "hour_at_ms": hour_of(at_ms),
                "bucket": bucket,
                "n": n,
                "total": totals[kind, bucket],
            }
            for (kind, bucket), n in counts.items()
        ],
    )


def spread(
    ledger: Ledger, partition_id: PartitionId, kind: Measure, since_ms: int | None = None
) -> Spread:
    """Return the spread of a measure over a partition's answers, empty if there are none.

    Hours are whole: the one in which `since_ms` lies counts from its beginning.
    """
    return spreads(ledger, partition_id, [kind], since_ms)[kind]


def spreads(
    ledger: Ledger,
    partition_id: PartitionId,
    kinds: Sequence[Measure] = tuple(Measure),
    since_ms: int | None = None,
) -> dict[Measure, Spread]:
    """Return several measures of a partition as they are at one moment; hours as in `spread`."""
    with ledger.read() as connection:
        rows = connection.execute(
            _SPREADS,
            {"partition_id": partition_id, "kinds": list(kinds), "since": _first_hour(since_ms)},
        ).all()
    found: dict[str, list[tuple[int, int, int]]] = {kind: [] for kind in kinds}
    for row in rows:
        found[row.kind].append((row.bucket, row.n, row.total))
    return {kind: Spread.counted(found[kind]) for kind in kinds}


def of_run(ledger: Ledger, run_id: RunId, kind: Measure, since_ms: int | None = None) -> Spread:
    """Return the spread of a measure over all partitions of a run; hours as in `spread`."""
    with ledger.read() as connection:
        rows = connection.execute(
            _OF_RUN, {"run_id": run_id, "kind": kind, "since": _first_hour(since_ms)}
        ).all()
    return Spread.counted((row.bucket, row.n, row.total) for row in rows)


def by_hour(
    ledger: Ledger, partition_id: PartitionId, kind: Measure, since_ms: int | None = None
) -> list[tuple[int, Spread]]:
    """Return (hour_at_ms, spread) in order of time; an hour in which no answer ended is absent."""
    with ledger.read() as connection:
        rows = connection.execute(
            _BY_HOUR, {"partition_id": partition_id, "kind": kind, "since": _first_hour(since_ms)}
        ).all()
    hours: dict[int, list[tuple[int, int, int]]] = {}
    for row in rows:
        hours.setdefault(row.hour_at_ms, []).append((row.bucket, row.n, row.total))
    return [(hour_at_ms, Spread.counted(found)) for hour_at_ms, found in hours.items()]


def adopted_tokens(ledger: Ledger, partition_id: PartitionId) -> int:
    """Return how many output tokens of a partition were taken over, not received by a worker."""
    with ledger.read() as connection:
        n: int = connection.execute(
            text(
                "SELECT coalesce(sum(total), 0) FROM measure"
                " WHERE partition_id = :id AND kind = :kind"
            ),
            {"id": partition_id, "kind": Elsewhere.ADOPTED},
        ).scalar_one()
    return n


def hour_of(moment_ms: int) -> int:
    """Return the beginning of the hour (UTC) in which a moment lies, in ms since 1970."""
    return moment_ms - moment_ms % HOUR_MS


def _first_hour(since_ms: int | None) -> int:
    return 0 if since_ms is None else hour_of(since_ms)
