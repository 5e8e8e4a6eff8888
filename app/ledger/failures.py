"""Failures by their reasons: what there is, read in bounded pieces, and a retry of exactly those.

Owns how far a survey looks. Invariants: a survey jumps from reason to reason in the index of
failures and counts up to a cap, so a million failures cost what a thousand do, and what was not
counted is said; a retry takes the samples that stood there when it began, each at most once, and
none that somebody else has taken meanwhile.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, text

from app.clock import from_ms
from app.core.reasons import FAILURES
from app.core.states import RETRYABLE, SampleState
from app.core.types import PartitionId, RunId, SampleId
from app.ledger.activity import Deed, note
from app.ledger.counters import Deltas, move
from app.ledger.db import Ledger
from app.ledger.turns import wait_again

MOST_REASONS = 400
MOST_COUNTED = 10_000
LARGEST_COUNT = 10_000
PIECE_SAMPLES = 2_000
_LEAST_REASONS = 20
_LEAST_COUNT = 50
_REASONS_AT_ONCE = 1_000

_FAILED = (
    "s.state IN ('failed', 'rejected', 'empty', 'suspect') AND s.partition_id = :partition"
    " AND s.state = :state"
)
# Each step finds the next reason in the index; the last row is the NULL behind the last one.
_DISTINCT = text(
    "WITH RECURSIVE step(reason, n) AS (SELECT"
    f" (SELECT min(s.reason) FROM sample s WHERE {_FAILED} AND s.reason > :after), 1"
    " UNION ALL SELECT"
    f" (SELECT min(s.reason) FROM sample s WHERE {_FAILED} AND s.reason > step.reason), n + 1"
    " FROM step WHERE step.reason IS NOT NULL AND n < :most)"
    " SELECT reason FROM step WHERE reason IS NOT NULL"
)
_SAME = f"FROM sample s WHERE {_FAILED} AND s.reason IS :reason"
_COUNTED = text(
    f"SELECT (SELECT count(*) FROM (SELECT 1 {_SAME} LIMIT :cap)) AS n,"
    f" (SELECT s.id {_SAME} ORDER BY s.id LIMIT 1) AS first_id,"
    f" (SELECT s.id {_SAME} ORDER BY s.id DESC LIMIT 1) AS last_id"
)
_TIMES = text(
    "SELECT sample_id, max(at_ms) AS at_ms FROM attempt WHERE sample_id IN :ids GROUP BY sample_id"
).bindparams(bindparam("ids", expanding=True))
_MEMBERS = text(
    f"SELECT s.id, s.attempt FROM sample s WHERE {_FAILED} AND s.reason IN :reasons"
).bindparams(bindparam("reasons", expanding=True))
_NAMELESS = text(f"SELECT s.id, s.attempt FROM sample s WHERE {_FAILED} AND s.reason IS NULL")
_AGAIN = text(
    "UPDATE sample SET state = 'pending', charged = 0, server_deaths = 0, claim_rank = 1,"
    " not_before_at_ms = 0 WHERE id = :id AND attempt = :attempt AND partition_id = :partition"
    " AND state = :state AND token_offset IS NOT NULL"
)

Wanted = Callable[[SampleState, str | None], bool]
Member = tuple[int, int]  # id and attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The failures of one partition that have the very same reason.

    `is_least`: there are `n` or more. `first` and `last` are in input order; their times are those
    of their last attempt that failed, None where there was none.
    """

    partition_id: PartitionId
    state: SampleState
    reason: str | None
    n: int
    is_least: bool
    first: SampleId
    last: SampleId
    first_at: datetime | None = None
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was found, and the partitions and states that have more reasons than were looked at."""

    variants: tuple[Variant, ...]
    unfinished: tuple[tuple[PartitionId, SampleState], ...]


def survey(
    ledger: Ledger, run_id: RunId, partition_id: PartitionId | None, state: SampleState | None
) -> Survey:
    """Return the reasons of a run's failures, of one partition or state where that is given."""
    with ledger.read() as connection:
        counts = [
            (PartitionId(row.id), each, int(getattr(row, f"n_{each}")))
            for row in connection.execute(
                text("SELECT * FROM partition WHERE run_id = :run ORDER BY id"), {"run": run_id}
            ).all()
            for each in FAILURES
            if partition_id in (None, row.id) and state in (None, each)
        ]
        places = [(each, found, n) for each, found, n in counts if n]
        most = max(_LEAST_REASONS, MOST_REASONS // max(1, len(places)))
        reasons = [_first_reasons(connection, place, most) for place in places]
        n_reasons = sum(map(len, reasons))
        cap = min(LARGEST_COUNT, max(_LEAST_COUNT, MOST_COUNTED // max(1, n_reasons)))
        variants: list[Variant] = []
        unfinished = []
        for place, known in zip(places, reasons, strict=True):
            found = [_counted(connection, place, reason, cap) for reason in known]
            is_whole = len(known) < most
            variants += _completed([one for one in found if one], place[2] if is_whole else None)
            if not is_whole:
                unfinished.append(place[:2])
        return Survey(variants=_dated(connection, variants), unfinished=tuple(unfinished))


def _first_reasons(
    connection: Connection, place: tuple[PartitionId, SampleState, int], most: int
) -> list[str | None]:
    """Return up to `most` different reasons, that of those without one first."""
    where = {"partition": place[0], "state": place[1]}
    named = connection.execute(_DISTINCT, {**where, "after": "", "most": most - 1}).scalars()
    return [None, *named]


def _counted(
    connection: Connection,
    place: tuple[PartitionId, SampleState, int],
    reason: str | None,
    cap: int,
) -> Variant | None:
    partition_id, state, _ = place
    values = {"partition": partition_id, "state": state, "reason": reason, "cap": cap + 1}
    row = connection.execute(_COUNTED, values).one()
    if not row.n:
        return None
    return Variant(
        partition_id=partition_id,
        state=state,
        reason=reason,
        n=min(row.n, cap),
        is_least=row.n > cap,
        first=SampleId(row.first_id),
        last=SampleId(row.last_id),
    )


def _completed(found: list[Variant], total: int | None) -> list[Variant]:
    """Return the variants with the one that was too many to count known by the others' rest."""
    large = [one for one in found if one.is_least]
    if total is None or len(large) != 1:
        return found
    rest = total - sum(one.n for one in found if not one.is_least)
    return [replace(one, n=rest, is_least=False) if one.is_least else one for one in found]


def _dated(connection: Connection, variants: Sequence[Variant]) -> tuple[Variant, ...]:
    ids = sorted({each for one in variants for each in (one.first, one.last)})
    at = {
        row.sample_id: from_ms(row.at_ms) for row in connection.execute(_TIMES, {"ids": ids}).all()
    }
    return tuple(
        replace(one, first_at=at.get(one.first), last_at=at.get(one.last)) for one in variants
    )


def members(
    ledger: Ledger, partition_id: PartitionId, state: SampleState, wanted: Wanted
) -> list[Member]:
    """Return the failures of one state whose reason is wanted, as they stand at one moment."""
    where = {"partition": partition_id, "state": state}
    found: list[Member] = []
    with ledger.read() as connection:
        if wanted(state, None):
            found += _pairs(connection.execute(_NAMELESS, where))
        for reasons in _all_reasons(connection, where):
            chosen = [reason for reason in reasons if wanted(state, reason)]
            if chosen:
                found += _pairs(connection.execute(_MEMBERS, {**where, "reasons": chosen}))
    return found


def _pairs(rows: object) -> Iterator[Member]:
    for row in rows:  # type: ignore[attr-defined]  # a result of two columns
        yield row.id, row.attempt


def _all_reasons(connection: Connection, where: dict[str, object]) -> Iterator[list[str]]:
    after = ""
    while True:
        values = {**where, "after": after, "most": _REASONS_AT_ONCE}
        reasons = list(connection.execute(_DISTINCT, values).scalars())
        if not reasons:
            return
        yield reasons
        after = reasons[-1]


def retry_members(
    ledger: Ledger,
    partition_id: PartitionId,
    state: SampleState,
    chosen: Sequence[Member],
    deed: Deed,
    now: datetime,
) -> int:
    """Make these samples pending again, in pieces; return how many were moved.

    A sample that was claimed since it was chosen has another attempt, and is left alone. Their old
    lines stay valid until replaced; attempts are counted afresh. The deed is noted once. Turns
    behind them wait again, and are not counted.
    """
    if state not in RETRYABLE:
        return 0
    moved = 0
    for begin in range(0, len(chosen), PIECE_SAMPLES):
        piece = [
            {"id": sample_id, "attempt": attempt, "partition": partition_id, "state": state}
            for sample_id, attempt in chosen[begin : begin + PIECE_SAMPLES]
        ]
        with ledger.write() as connection:
            n = connection.execute(_AGAIN, piece).rowcount
            if not n:
                continue
            deltas = Deltas()
            deltas.moved(state, SampleState.PENDING, n)
            move(connection, partition_id, deltas)
            ids = [sample_id for sample_id, _ in chosen[begin : begin + PIECE_SAMPLES]]
            wait_again(connection, partition_id, ids)
            connection.execute(
                text("UPDATE partition SET sealed_at_ms = NULL WHERE id = :id"),
                {"id": partition_id},
            )
            if not moved:
                note(connection, deed, now)
            moved += n
    return moved
