"""Samples as people look through them: pages of a partition, in input order.

Owns how far a page looks. Invariant: every statement here reads a bounded piece of one index, so a
page costs the same in a partition of a million samples; with a state asked for it may therefore be
short, or empty, and still have more behind it. Changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, text

from app.core.states import KEPT, SampleState
from app.core.types import PartitionId, SampleId
from app.core.views import PartitionView
from app.ledger.counters import kept_states
from app.ledger.db import Ledger

WINDOW = 2_000
_LAST = 2**62

SAMPLE_COLUMNS = (
    "s.id, s.partition_id, s.key, s.position, s.record_index, s.replica, s.turn, s.state,"
    " s.prompt_tokens, s.output_tokens, s.held_tokens, s.attempt, s.charged, s.finish_reason,"
    " s.flags, s.reason"
)
_FAILURES = "s.state IN ('failed', 'rejected', 'empty', 'suspect')"
_KEPT = f"s.state IN ({kept_states()})"
_IN_PARTITION = "s.partition_id = :partition AND s.position > :after"
_IN_FAILURES = frozenset(
    {SampleState.FAILED, SampleState.REJECTED, SampleState.EMPTY, SampleState.SUSPECT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEntry:
    """A sample in a list. `output_tokens` are those of its valid line, 0 without one."""

    id: SampleId
    partition_id: PartitionId
    key: str
    position: int
    index: int
    replica: int
    turn: int = 1
    state: SampleState
    prompt_tokens: int | None
    output_tokens: int
    held_tokens: int
    attempt: int
    charged: int
    finish_reason: str | None
    flags: tuple[str, ...]
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePage:
    """Samples in input order. `next_after` is None where nothing can follow."""

    samples: tuple[SampleEntry, ...]
    next_after: int | None


def sample_page(
    ledger: Ledger, partition: PartitionView, state: SampleState | None, after: int, limit: int
) -> SamplePage:
    """Return up to `limit` samples behind the position `after`, -1 being the beginning."""
    with ledger.read() as connection:
        if state is None:
            return _next(connection, partition.id, after, limit)
        n = getattr(partition.counts, state)
        if n == 0:
            return SamplePage(samples=(), next_after=None)
        if state in _IN_FAILURES and n <= WINDOW:
            return _few(connection, state, (partition.id, after, limit))
        if state is SampleState.PENDING and partition.intake == "tokenized":
            return _pending(connection, partition.id, after, limit)
        if state is SampleState.RUNNING and n <= WINDOW:
            return _running(connection, (partition.id, after, limit))
        where = f"{_KEPT} AND {_IN_PARTITION}" if state in KEPT else _IN_PARTITION
        return _window(connection, where, state, (partition.id, after, limit))


def _next(connection: Connection, partition_id: PartitionId, after: int, limit: int) -> SamplePage:
    rows = connection.execute(
        text(
            f"SELECT {SAMPLE_COLUMNS} FROM sample s WHERE {_IN_PARTITION}"
            " ORDER BY s.position LIMIT :limit"
        ),
        {"partition": partition_id, "after": after, "limit": limit + 1},
    ).all()
    return _cut(rows, limit)


def _few(
    connection: Connection, state: SampleState, which: tuple[PartitionId, int, int]
) -> SamplePage:
    """Return those of a state that few have, all read from the index of failures.

    Sorted here: asked for their order, the planner walks the partition by position instead.
    """
    partition_id, after, limit = which
    rows = connection.execute(
        text(
            f"SELECT {SAMPLE_COLUMNS} FROM sample s WHERE {_FAILURES} AND s.state = '{state}'"
            " AND s.partition_id = :partition LIMIT :most"
        ),
        {"partition": partition_id, "most": WINDOW + 1},
    ).all()
    if len(rows) > WINDOW:  # more of them since they were counted
        return _window(connection, _IN_PARTITION, state, which)
    return _cut(_behind(rows, after), limit)


def _behind(rows: Sequence[Row[Any]], after: int) -> list[Row[Any]]:
    behind = [row for row in rows if row.position > after]
    return sorted(behind, key=lambda row: int(row.position))


def _pending(
    connection: Connection, partition_id: PartitionId, after: int, limit: int
) -> SamplePage:
    """Merge continuations, fresh ones and turns that wait, each from the index that has them."""
    rows: list[Row[Any]] = []
    for rank in (0, 1):
        rows += connection.execute(
            text(
                f"SELECT {SAMPLE_COLUMNS} FROM sample s WHERE s.state = 'pending'"
                f" AND s.claim_rank IS NOT NULL AND s.claim_rank = :rank AND {_IN_PARTITION}"
                " ORDER BY s.position LIMIT :limit"
            ),
            {"partition": partition_id, "after": after, "limit": limit + 1, "rank": rank},
        ).all()
    rows += connection.execute(
        text(
            f"SELECT {SAMPLE_COLUMNS} FROM sample p CROSS JOIN sample s"
            " WHERE p.partition_id = :partition AND p.awaited AND p.position >= :after"
            " AND s.partition_id = p.partition_id AND s.position = p.position + 1"
            " AND s.state = 'pending' AND s.position > :after ORDER BY p.position LIMIT :limit"
        ),
        {"partition": partition_id, "after": after, "limit": limit + 1},
    ).all()
    return _cut(_behind(rows, after), limit)


def _running(connection: Connection, which: tuple[PartitionId, int, int]) -> SamplePage:
    """Return what the partition's workers have in their hands."""
    partition_id, after, limit = which
    living = connection.execute(
        text("SELECT id FROM worker WHERE partition_id = :id AND state <> 'exited'"),
        {"id": partition_id},
    ).scalars()
    rows: list[Row[Any]] = []
    for worker_id in living.all():
        rows += connection.execute(
            text(
                f"SELECT {SAMPLE_COLUMNS} FROM sample s WHERE s.worker_id = :worker"
                " AND s.state = 'running' LIMIT :most"
            ),
            {"worker": worker_id, "most": WINDOW},
        ).all()
    return _cut(_behind(rows, after), limit)


def _window(
    connection: Connection,
    where: str,
    state: SampleState,
    which: tuple[PartitionId, int, int],
) -> SamplePage:
    """Look at the next rows of an index for those of a state; the edge is where looking ended."""
    partition_id, after, limit = which
    edge: int | None = connection.execute(
        text(
            f"SELECT s.position FROM sample s WHERE {where}"
            " ORDER BY s.position LIMIT 1 OFFSET :window"
        ),
        {"partition": partition_id, "after": after, "window": WINDOW - 1},
    ).scalar()
    rows = connection.execute(
        text(
            f"SELECT {SAMPLE_COLUMNS} FROM sample s WHERE {where} AND s.position <= :edge"
            " AND s.state = :state ORDER BY s.position LIMIT :limit"
        ),
        {
            "partition": partition_id,
            "after": after,
            "edge": _LAST if edge is None else edge,
            "state": state,
            "limit": limit + 1,
        },
    ).all()
    page = _cut(rows, limit)
    if page.next_after is not None:
        return page
    return SamplePage(samples=page.samples, next_after=edge)


def _cut(rows: Sequence[Row[Any]], limit: int) -> SamplePage:
    """Return the page of rows of which one more than shown was asked for."""
    shown = tuple(sample_entry(row) for row in rows[:limit])
    return SamplePage(
        samples=shown, next_after=shown[-1].position if len(rows) > limit and shown else None
    )


def sample_entry(row: Row[Any]) -> SampleEntry:
    return SampleEntry(
        id=SampleId(row.id),
        partition_id=PartitionId(row.partition_id),
        key=row.key,
        position=row.position,
        index=row.record_index,
        replica=row.replica,
        turn=row.turn,
        state=SampleState(row.state),
        prompt_tokens=row.prompt_tokens,
        output_tokens=row.output_tokens,
        held_tokens=row.held_tokens,
        attempt=row.attempt,
        charged=row.charged,
        finish_reason=row.finish_reason,
        flags=tuple(row.flags.split(",")) if row.flags else (),
        reason=row.reason,
    )
