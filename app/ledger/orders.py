"""What people order of a run and its partitions: moves between states, noted with old and new.

Each order is one write transaction: read what stands, change it where the table of
`core/states.py` allows, note it. A move that is not allowed is a ConflictError that names the
states, and nothing of the order is done. Limits are `limits.py`, with the row readers of here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, text

from app.clock import to_ms
from app.core.deadlines import is_by_deadline
from app.core.states import PARTITION_MOVES, PartitionState, RunState
from app.core.types import PartitionId, RunId
from app.errors import ConflictError, NotFoundError
from app.ledger.activity import Deed, note
from app.ledger.db import Ledger
from app.ledger.row_views import partition_view

_SYSTEM = "system"
RESTARTED = "requests start again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that an order changed. `target` is a partition's name, or "run"."""

    target: str
    what: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Who orders, of which run, when."""

    run_id: RunId
    who: str
    now: datetime


def move_partitions(
    ledger: Ledger, order: Order, names: Sequence[str], event: str, *, reason: str = ""
) -> list[Change]:
    """Move the named partitions by the event, all or none."""
    with ledger.write() as connection:
        rows = [row_named(connection, order.run_id, name) for name in names]
        unfit = [row for row in rows if _target(row, event, order) is None]
        if unfit:
            are = ", ".join(f"{row['name']} is {row['state']}" for row in unfit)
            raise ConflictError(f"{event} is not possible now: {are}; nothing was changed")
        return [_move(connection, row, event, order, reason) for row in rows]


def move_each(ledger: Ledger, order: Order, event: str) -> list[Change]:
    """Move every partition of the run that the event can move."""
    with ledger.write() as connection:
        rows = rows_of(connection, order.run_id)
        fit = [row for row in rows if _target(row, event, order) is not None]
        return [_move(connection, row, event, order, "") for row in fit]


def drained(ledger: Ledger, partition_id: PartitionId, now: datetime) -> bool:
    """Say that a draining partition's worker has left; return whether it was draining still."""
    with ledger.write() as connection:
        row = _by_id(connection, partition_id)
        order = Order(run_id=RunId(row["run_id"]), who=_SYSTEM, now=now)
        if _target(row, "drained", order) is None:
            return False
        _move(connection, row, "drained", order, "drained")
    return True


def restarted(ledger: Ledger, partition_id: PartitionId, now: datetime) -> bool:
    """Let a partition go on whose requests were taken back; return whether it waited for that."""
    with ledger.write() as connection:
        row = _by_id(connection, partition_id)
        order = Order(run_id=RunId(row["run_id"]), who=_SYSTEM, now=now)
        if (row["state"], row["reason"]) != (PartitionState.PAUSED, RESTARTED):
            return False
        _move(connection, row, "resume", order, "")
    return True


def reopen_run(ledger: Ledger, order: Order) -> bool:
    """Let a finished run go on if a partition has work again; return whether it does."""
    with ledger.write() as connection:
        run_row(connection, order.run_id)
        return open_run(connection, order)


def finish_run(ledger: Ledger, order: Order) -> bool:
    """Say that a running run has nothing left; return whether that is so at this very moment.

    Looked at inside the transaction: a goal or budget that was raised meanwhile keeps it open.
    """
    with ledger.write() as connection:
        views = [partition_view(row) for row in rows_of(connection, order.run_id)]
        if not all(view.is_over and view.sealed_at is not None for view in views):
            return False
        moved = connection.execute(
            text(
                "UPDATE run SET state = :finished, state_since_at_ms = :now, reason = ''"
                " WHERE id = :id AND state = :running"
            ),
            {
                "finished": RunState.FINISHED,
                "running": RunState.RUNNING,
                "now": to_ms(order.now),
                "id": order.run_id,
            },
        ).rowcount
        if moved:
            change = Change(target="run", what="state", old=RunState.RUNNING, new=RunState.FINISHED)
            note_change(connection, change, order, None)
    return bool(moved)


def open_run(connection: Connection, order: Order) -> bool:
    moved = connection.execute(
        text(
            "UPDATE run SET state = :running, state_since_at_ms = :now, reason = ''"
            " WHERE id = :id AND state = :finished AND EXISTS (SELECT 1 FROM partition"
            " WHERE run_id = :id AND n_pending > 0 AND sealed_at_ms IS NULL)"
        ),
        {
            "running": RunState.RUNNING,
            "finished": RunState.FINISHED,
            "now": to_ms(order.now),
            "id": order.run_id,
        },
    ).rowcount
    if moved:
        change = Change(target="run", what="state", old=RunState.FINISHED, new=RunState.RUNNING)
        note_change(connection, change, order, None)
    return bool(moved)


def _move(connection: Connection, row: RowMapping, event: str, order: Order, reason: str) -> Change:
    target = _target(row, event, order)
    if target is None:
        raise ConflictError(f"{event} is not possible now: {row['name']} is {row['state']}")
    connection.execute(
        text(
            "UPDATE partition SET state = :to, state_since_at_ms = :now, reason = :why"
            " WHERE id = :id"
        ),
        {"to": target, "now": to_ms(order.now), "why": reason, "id": row["id"]},
    )
    by_deadline = target == row["state"] and f"{row['state']} by its deadline"
    change = Change(target=row["name"], what="state", old=by_deadline or row["state"], new=target)
    note_change(connection, change, order, row["id"], reason)
    return change


def _target(row: RowMapping, event: str, order: Order) -> PartitionState | None:
    """Return where the event leads; a pause that a deadline made may become a person's own."""
    state = PartitionState(row["state"])
    is_again = (state, event) == (PartitionState.PAUSED, "pause")
    if is_again and order.who != _SYSTEM and is_by_deadline(row["reason"]):
        return state
    return PARTITION_MOVES.get((state, event))


def note_change(
    connection: Connection,
    change: Change,
    order: Order,
    partition_id: int | None,
    reason: str = "",
) -> None:
    because = f" ({reason})" if reason and reason != change.new else ""
    deed = Deed(
        who=order.who,
        event=change.what,
        detail=f"{change.target}: {change.old} -> {change.new}{because}",
        run_id=order.run_id,
        partition_id=None if partition_id is None else PartitionId(partition_id),
    )
    note(connection, deed, order.now)


def run_row(connection: Connection, run_id: RunId) -> RowMapping:
    row = connection.execute(text("SELECT * FROM run WHERE id = :id"), {"id": run_id})
    found = row.mappings().first()
    if found is None:
        raise NotFoundError(f"there is no run {run_id}")
    return found


def rows_of(connection: Connection, run_id: RunId) -> Sequence[RowMapping]:
    rows = connection.execute(
        text("SELECT * FROM partition WHERE run_id = :id ORDER BY id"), {"id": run_id}
    )
    return rows.mappings().all()


def row_named(connection: Connection, run_id: RunId, name: str) -> RowMapping:
    rows = rows_of(connection, run_id)
    for row in rows:
        if row["name"] == name:
            return row
    known = ", ".join(row["name"] for row in rows)
    raise NotFoundError(f"run {run_id} has no partition {name}", hint=f"It has {known}")


def _by_id(connection: Connection, partition_id: PartitionId) -> RowMapping:
    row = connection.execute(text("SELECT * FROM partition WHERE id = :id"), {"id": partition_id})
    found = row.mappings().first()
    if found is None:
        raise NotFoundError(f"there is no partition {partition_id}")
    return found
