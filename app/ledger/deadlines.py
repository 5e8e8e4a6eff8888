"""Deadlines in the ledger: set and moved by people, and what happens when one is reached.

Each function is one write transaction. Invariant: reaching is guarded by the very deadline that
was decided on, so one that a person moved at that moment stops nothing; moving or removing a
deadline sets going again what it had stopped, and only that.
"""

from datetime import datetime

from sqlalchemy import Connection, text

from app.clock import from_ms, iso, to_ms
from app.core.deadlines import NONE, goes_on_when_moved, is_by_deadline, reason_of, shown
from app.core.states import PARTITION_MOVES, RUN_MOVES, PartitionState, RunState
from app.core.types import PartitionId
from app.errors import ConflictError
from app.ledger.db import Ledger
from app.ledger.orders import Change, Order, note_change, row_named, run_row
from app.ledger.seen import Seen, Setting, set_seen

_WHAT = "deadline"


def set_run_deadline(
    ledger: Ledger,
    order: Order,
    at: datetime | None,
    *,
    resume: bool = True,
    seen: Seen | None = None,
) -> list[Change]:
    """Set when the run is to stop; with `resume`, a run whose work its deadline ended goes on."""
    with ledger.write() as connection:
        run = run_row(connection, order.run_id)
        by_deadline = is_by_deadline(run["reason"])
        if by_deadline and run["state"] == RunState.STOPPING:
            raise ConflictError(
                f"run {order.run_id} is being stopped by its deadline at this moment",
                hint="Set it again when the run has stopped: it takes about two seconds",
            )
        _set(connection, order, ("run", "run", order.run_id), (run["deadline_at_ms"], at), seen)
        changes = [_noted(connection, order, "run", None, (run["deadline_at_ms"], at))]
        if resume and goes_on_when_moved(run["reason"]) and run["state"] == RunState.STOPPED:
            target = RUN_MOVES[RunState.STOPPED, "resume"]
            _move(connection, "run", order.run_id, target, order)
            change = Change(target="run", what="state", old=run["state"], new=target)
            note_change(connection, change, order, None)
            changes.append(change)
    return changes


def set_partition_deadline(
    ledger: Ledger, order: Order, name: str, at: datetime | None, *, seen: Seen | None = None
) -> list[Change]:
    """Set when a partition is to pause; one that its deadline has paused goes on."""
    with ledger.write() as connection:
        row = row_named(connection, order.run_id, name)
        old_new = (row["deadline_at_ms"], at)
        _set(connection, order, (name, "partition", row["id"]), old_new, seen)
        changes = [_noted(connection, order, name, row["id"], (row["deadline_at_ms"], at))]
        if row["state"] == PartitionState.PAUSED and is_by_deadline(row["reason"]):
            target = PARTITION_MOVES[PartitionState.PAUSED, "resume"]
            _move(connection, "partition", row["id"], target, order)
            change = Change(target=name, what="state", old=row["state"], new=target)
            note_change(connection, change, order, row["id"])
            changes.append(change)
    return changes


def reach_run(ledger: Ledger, order: Order, deadline: datetime) -> bool:
    """Begin to stop a run whose deadline this still is, running or paused; return if it was so."""
    with ledger.write() as connection:
        was = run_row(connection, order.run_id)["state"]
        if was not in (RunState.RUNNING, RunState.PAUSED):
            return False
        reason = reason_of(deadline.astimezone(), was_paused=was == RunState.PAUSED)
        moved = connection.execute(
            text(
                "UPDATE run SET state = :to, state_since_at_ms = :now, reason = :why"
                " WHERE id = :id AND state = :was AND deadline_at_ms = :deadline"
            ),
            {
                "to": RunState.STOPPING,
                "now": to_ms(order.now),
                "why": reason,
                "id": order.run_id,
                "was": was,
                "deadline": to_ms(deadline),
            },
        ).rowcount
        if moved:
            change = Change(target="run", what="state", old=was, new=RunState.STOPPING)
            note_change(connection, change, order, None, reason)
    return bool(moved)


def reach_partition(
    ledger: Ledger, order: Order, partition_id: PartitionId, deadline: datetime
) -> bool:
    """Pause a partition at work whose deadline this still is; return whether it was so.

    One that drains was on its way to a pause by a person's will: no deadline sets it going again.
    """
    reason = reason_of(deadline.astimezone())
    with ledger.write() as connection:
        row = connection.execute(
            text(
                "UPDATE partition SET state_since_at_ms = :now,"
                " reason = CASE state WHEN 'draining' THEN 'drained' ELSE :why END, state = :to"
                " WHERE id = :id AND state <> :to AND deadline_at_ms = :deadline RETURNING name"
            ),
            {
                "to": PartitionState.PAUSED,
                "now": to_ms(order.now),
                "why": reason,
                "id": partition_id,
                "deadline": to_ms(deadline),
            },
        ).first()
        if row is not None:
            change = Change(target=row.name, what="state", old="at work", new=PartitionState.PAUSED)
            note_change(connection, change, order, partition_id, reason)
    return row is not None


def _move(connection: Connection, table: str, row_id: int, target: str, order: Order) -> None:
    connection.execute(
        text(
            f"UPDATE {table} SET state = :to, state_since_at_ms = :now, reason = '' WHERE id = :id"
        ),
        {"to": target, "now": to_ms(order.now), "id": row_id},
    )


def _set(
    connection: Connection,
    order: Order,
    target: tuple[str, str, int],
    old_new: tuple[int | None, datetime | None],
    seen: Seen | None,
) -> None:
    name, table, row_id = target
    old = None if old_new[0] is None else from_ms(old_new[0])
    what = Setting(what=_WHAT, target=name, table=table, row_id=row_id, column="deadline_at_ms")
    now = (_shown(old), NONE if old is None else iso(old))
    set_seen(connection, order, what, _ms(old_new[1]), seen, now=now)


def _noted(
    connection: Connection,
    order: Order,
    target: str,
    partition_id: int | None,
    old_new: tuple[int | None, datetime | None],
) -> Change:
    old, new = old_new
    before = None if old is None else from_ms(old)
    change = Change(target=target, what=_WHAT, old=_shown(before), new=_shown(new))
    note_change(connection, change, order, partition_id)
    return change


def _ms(at: datetime | None) -> int | None:
    return None if at is None else to_ms(at)


def _shown(at: datetime | None) -> str:
    return NONE if at is None else shown(at.astimezone())
