"""The tick of a worker: what its samples have gained and how attempts ended, in one transaction.

Invariant: all or nothing, and only for samples that are still this worker's (id, worker, attempt,
running). One row that does not match raises DisownedError and nothing of the tick is recorded.
What is held of a valid line (extend) is counted as kept, so it moves no counter here; where such
an attempt fails for good, the sample is truncated again, as its line says.
The same transaction counts the measures of the answers that were kept, renews the lease and
brings back the orders: a heartbeat that proves the ledger path.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, text

from app.clock import to_ms
from app.core.spread import Measure, measured
from app.core.states import SampleState
from app.core.types import Fail, Gain, Keep, Orders, PutBack, SampleId, Settled, Tick
from app.errors import DisownedError
from app.ledger import checkpoints, measures
from app.ledger.counters import Deltas, move
from app.ledger.db import Ledger
from app.ledger.heartbeat import (
    heartbeat,
    read_orders,
    reason_of,
    record_figures,
    record_history,
    unsaved_tokens,
)
from app.seams import Seam, seam

_MINE = " WHERE id = :id AND worker_id = :worker AND attempt = :attempt AND state = 'running'"
_GAIN = text("UPDATE sample SET held_tokens = held_tokens + :n, alone = false" + _MINE)
_KEEP = text(
    "UPDATE sample SET state = :state, worker_id = NULL, alone = false, held_tokens = 0,"
    " output_tokens = :output_tokens, shard_id = :shard_id, line_offset = :line_offset,"
    " line_bytes = :line_bytes, finish_reason = :finish_reason, flags = :flags, reason = NULL"
    + _MINE
)
_PUT_BACK = text(
    "UPDATE sample SET state = 'pending', worker_id = NULL, alone = false,"
    " held_tokens = :held_tokens, claim_rank = :claim_rank, charged = charged + :charged,"
    " server_deaths = server_deaths + :died, not_before_at_ms = :not_before, reason = :reason"
    + _MINE
)
_FAIL = text(
    "UPDATE sample SET state = :state, worker_id = NULL, alone = false, held_tokens = 0,"
    " charged = charged + 1, reason = :reason" + _MINE
)


def settle(ledger: Ledger, tick: Tick, now: datetime) -> Orders:
    """Record the tick; DisownedError if worker or samples are no longer its own."""
    now_ms = to_ms(now)
    deltas = Deltas()
    with ledger.write() as connection:
        heartbeat(connection, tick, now)
        _record_gains(connection, tick, deltas)
        _record_kept(connection, tick, deltas)
        _record_put_back(connection, tick, deltas, now_ms)
        _record_failed(connection, tick, deltas)
        record_history(connection, tick, now_ms)
        move(connection, tick.partition_id, deltas)
        measures.add(connection, tick.partition_id, _measured(tick), now_ms)
        record_figures(connection, tick, deltas.received_tokens)
        orders = read_orders(connection, tick)
        seam(Seam.SETTLE_BEFORE_COMMIT)
    seam(Seam.SETTLE_COMMITTED)
    return orders


def _guarded(connection: Connection, statement: object, rows: Sequence[dict[str, object]]) -> None:
    """Run the statement for each row; each must change exactly one sample."""
    if not rows:
        return
    result = connection.execute(statement, rows)  # type: ignore[call-overload]  # a TextClause
    if result.rowcount != len(rows):
        raise DisownedError(
            f"{len(rows) - result.rowcount} of {len(rows)} samples are no longer this worker's"
        )


def _record_gains(connection: Connection, tick: Tick, deltas: Deltas) -> None:
    unsaved = [
        entry.unsaved
        for entry in tick.settled
        if entry.unsaved is not None and _is_held(entry) and entry.unsaved.n_tokens
    ]
    _guarded(
        connection,
        _GAIN,
        [{"n": gain.n_tokens, **_key(gain.sample_id, gain.attempt, tick)} for gain in tick.gains],
    )
    checkpoints.add(connection, [_checkpoint_row(gain) for gain in (*tick.gains, *unsaved)])
    gained = sum(gain.n_tokens for gain in tick.gains)
    deltas.received_tokens += gained
    deltas.held_tokens += gained


def _is_held(entry: Settled) -> bool:
    return isinstance(entry.outcome, PutBack) and not entry.outcome.start_over


def _checkpoint_row(gain: Gain) -> dict[str, object]:
    return {
        "sample_id": gain.sample_id,
        "from_token": gain.from_token,
        "attempt": gain.attempt,
        "rid": gain.rid,
        "server": gain.server,
        "gen_id": gain.gen_id,
        "ids": gain.ids,
    }


def _key(sample_id: SampleId, attempt: int, tick: Tick) -> dict[str, object]:
    return {"id": sample_id, "attempt": attempt, "worker": tick.worker_id}


def _record_kept(connection: Connection, tick: Tick, deltas: Deltas) -> None:
    rows: list[dict[str, object]] = []
    for entry in tick.settled:
        outcome, line = entry.outcome, entry.line
        if not isinstance(outcome, Keep) or line is None:
            continue
        rows.append(
            {
                "state": outcome.state,
                "output_tokens": line.output_tokens,
                "shard_id": line.shard_id,
                "line_offset": line.offset,
                "line_bytes": line.n_bytes,
                "finish_reason": outcome.finish_reason,
                "flags": ",".join(outcome.flags) or None,
                **_key(entry.sample_id, entry.attempt, tick),
            }
        )
        deltas.moved(SampleState.RUNNING, outcome.state)
        deltas.received_tokens += unsaved_tokens(entry)
        deltas.held_tokens -= entry.held_tokens - entry.line_tokens
        deltas.kept_tokens += line.output_tokens - entry.previous_tokens
        # Of an older line that part is wasted which the new one does not build on.
        deltas.wasted_tokens += entry.previous_tokens - entry.line_tokens
        # Tokens that were received but are not in the answer (dropped before a continuation).
        dropped = entry.held_tokens + unsaved_tokens(entry) - line.output_tokens
        deltas.wasted_tokens += dropped
    _guarded(connection, _KEEP, rows)
    checkpoints.drop(connection, _ids(tick, Keep))


def _measured(tick: Tick) -> list[tuple[Measure, int]]:
    return [
        value
        for entry in tick.settled
        if isinstance(entry.outcome, Keep) and entry.line is not None
        for value in measured(
            entry.line.output_tokens,
            entry.outcome.finish_reason,
            entry.prompt_tokens,
            first_token_ms=entry.first_token_ms,
            latency_ms=entry.latency_ms,
        )
    ]


def _ids(tick: Tick, kind: type[Keep | Fail]) -> list[SampleId]:
    return [entry.sample_id for entry in tick.settled if isinstance(entry.outcome, kind)]


def _record_put_back(connection: Connection, tick: Tick, deltas: Deltas, now_ms: int) -> None:
    rows: list[dict[str, object]] = []
    started_over: list[SampleId] = []
    for entry in tick.settled:
        outcome = entry.outcome
        if not isinstance(outcome, PutBack):
            continue
        unsaved = unsaved_tokens(entry)
        held = entry.line_tokens if outcome.start_over else entry.held_tokens + unsaved
        rows.append(
            {
                "held_tokens": held,
                "claim_rank": 0 if held else 1,
                "charged": int(outcome.charged),
                "died": int(outcome.server_died),
                "not_before": now_ms + int(outcome.delay_s * 1000) if outcome.delay_s else 0,
                "reason": outcome.reason,
                **_key(entry.sample_id, entry.attempt, tick),
            }
        )
        deltas.moved(SampleState.RUNNING, SampleState.PENDING)
        deltas.received_tokens += unsaved
        if outcome.start_over:
            started_over.append(entry.sample_id)
            made = entry.held_tokens - entry.line_tokens
            deltas.wasted_tokens += made + unsaved
            deltas.held_tokens -= made
        else:
            deltas.held_tokens += unsaved
    _guarded(connection, _PUT_BACK, rows)
    checkpoints.drop_made(connection, started_over)


def _record_failed(connection: Connection, tick: Tick, deltas: Deltas) -> None:
    failed = [entry for entry in tick.settled if isinstance(entry.outcome, Fail)]
    for entry in failed:
        unsaved, made = unsaved_tokens(entry), entry.held_tokens - entry.line_tokens
        deltas.moved(SampleState.RUNNING, _failed_state(entry))
        deltas.received_tokens += unsaved
        deltas.wasted_tokens += made + unsaved
        deltas.held_tokens -= made
    _guarded(connection, _FAIL, [_failed_row(entry, tick) for entry in failed])
    checkpoints.drop(connection, _ids(tick, Fail))


def _failed_state(entry: Settled) -> SampleState:
    """Return what becomes of a sample that is given up: its answer, if it was being extended."""
    return SampleState.TRUNCATED if entry.line_tokens else SampleState.FAILED


def _failed_row(entry: Settled, tick: Tick) -> dict[str, object]:
    reason = reason_of(entry)
    return {
        "state": _failed_state(entry),
        "reason": f"not extended: {reason}" if entry.line_tokens else reason,
        **_key(entry.sample_id, entry.attempt, tick),
    }
