"""The part of a tick that is not about samples: lease, figures, history, and the orders back.

Every function works inside the transaction of `settle`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import Connection, text

from app.clock import to_ms
from app.core.types import Fail, Keep, Orders, PutBack, Settled, Tick
from app.errors import DisownedError

_HISTORY = text(
    "INSERT INTO attempt (sample_id, attempt, worker_id, at_ms, charged, tokens, reason)"
    " VALUES (:sample_id, :attempt, :worker_id, :at_ms, :charged, :tokens, :reason)"
)


def unsaved_tokens(entry: Settled) -> int:
    return entry.unsaved.n_tokens if entry.unsaved is not None else 0


def reason_of(entry: Settled) -> str:
    return "" if isinstance(entry.outcome, Keep) else entry.outcome.reason


def heartbeat(connection: Connection, tick: Tick, now: datetime) -> None:
    result = connection.execute(
        text(
            "UPDATE worker SET state = :state, notice = :notice, in_flight = :in_flight,"
            " lease_expires_at_ms = :lease, waiting_since_at_ms = :waiting,"
            " last_token_at_ms = :token_at WHERE id = :id AND state <> 'exited'"
        ),
        {
            "state": tick.state,
            "notice": tick.notice,
            "in_flight": tick.in_flight,
            "lease": to_ms(now + timedelta(seconds=tick.lease_s)),
            "waiting": None if tick.waiting_since is None else to_ms(tick.waiting_since),
            "token_at": None if tick.last_token_at is None else to_ms(tick.last_token_at),
            "id": tick.worker_id,
        },
    )
    if result.rowcount != 1:
        raise DisownedError(f"worker {tick.worker_id} is no longer in the ledger")


def record_history(connection: Connection, tick: Tick, now_ms: int) -> None:
    rows = [
        {
            "sample_id": entry.sample_id,
            "attempt": entry.attempt,
            "worker_id": tick.worker_id,
            "at_ms": now_ms,
            "charged": _is_charged(entry),
            "tokens": unsaved_tokens(entry),
            "reason": reason_of(entry),
        }
        for entry in _worth_remembering(tick.settled)
    ]
    if rows:
        connection.execute(_HISTORY, rows)


def _worth_remembering(entries: Iterable[Settled]) -> list[Settled]:
    """Return what kept nothing and was somebody's fault: not a pause, not a full queue."""
    return [
        entry
        for entry in entries
        if isinstance(entry.outcome, Fail)
        or (
            isinstance(entry.outcome, PutBack)
            and (entry.outcome.charged or entry.outcome.start_over or entry.outcome.server_died)
        )
    ]


def _is_charged(entry: Settled) -> bool:
    return not isinstance(entry.outcome, PutBack) or entry.outcome.charged


def record_figures(connection: Connection, tick: Tick, received: int) -> None:
    connection.execute(
        text("UPDATE partition SET reserved_tokens = :n WHERE id = :id"),
        {"n": tick.reserved_tokens, "id": tick.partition_id},
    )
    connection.execute(
        text("UPDATE worker SET received_tokens = received_tokens + :n WHERE id = :id"),
        {"n": received, "id": tick.worker_id},
    )
    if tick.shard_id is not None:
        connection.execute(
            text("UPDATE shard SET committed_bytes = :n, inode = :inode WHERE id = :id"),
            {"n": tick.shard_bytes, "inode": tick.shard_inode, "id": tick.shard_id},
        )


def read_orders(connection: Connection, tick: Tick) -> Orders:
    wanted = connection.execute(
        text(
            "SELECT w.desired, p.max_new_tokens FROM worker w"
            " JOIN partition p ON p.id = w.partition_id WHERE w.id = :id"
        ),
        {"id": tick.worker_id},
    ).one()
    shares = connection.execute(
        text(
            "SELECT v.url, s.n FROM share s JOIN server v ON v.id = s.server_id"
            " WHERE s.worker_id = :id ORDER BY v.id"
        ),
        {"id": tick.worker_id},
    ).all()
    return Orders(
        desired=wanted.desired,
        shares={row.url: row.n for row in shares},
        max_new_tokens=wanted.max_new_tokens,
    )
