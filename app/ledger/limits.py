"""Limits that people set while a run is under way: concurrency, goal and token budgets.

Each function is one write transaction that changes the value, opens again what the new value
leaves room for, and notes old and new; `seen` is what the person saw (see `seen.py`). Invariant: a
partition that was sealed because of its limit is unsealed in the transaction that lifts the limit,
and a finished run runs again with it.
"""

from sqlalchemy import Connection, RowMapping, text

from app.ledger.db import Ledger
from app.ledger.orders import Change, Order, note_change, open_run, row_named, rows_of, run_row
from app.ledger.seen import NONE, SHARE, Seen, Setting, set_seen

_KEPT = "n_ok + n_truncated + n_empty + n_suspect"
_SHARE = "share of its class"


def _shown(value: int | None, absent: str = NONE) -> str:
    return absent if value is None else f"{value:,}"


def set_concurrency(
    ledger: Ledger, order: Order, name: str, n: int | None, seen: Seen | None = None
) -> Change:
    """Set a partition's own concurrency; None gives it back to its class."""
    with ledger.write() as connection:
        row = row_named(connection, order.run_id, name)
        old = row["own_concurrency"]
        now = (_shown(old, _SHARE), SHARE if old is None else str(old))
        what = Setting(
            what="concurrency",
            target=name,
            table="partition",
            row_id=row["id"],
            column="own_concurrency",
        )
        set_seen(connection, order, what, n, seen, now=now)
        return _noted(
            connection, row, order, ("concurrency", _shown(old, _SHARE), _shown(n, _SHARE))
        )


def set_goal(
    ledger: Ledger, order: Order, name: str, samples: int | None, seen: Seen | None = None
) -> Change:
    """Set how many answers are wanted of a partition; a goal that is not met opens it again."""
    with ledger.write() as connection:
        row = row_named(connection, order.run_id, name)
        what = Setting(
            what="goal", target=name, table="partition", row_id=row["id"], column="goal_samples"
        )
        set_seen(connection, order, what, samples, seen, now=_now(row["goal_samples"]))
        connection.execute(
            text(
                "UPDATE partition SET sealed_at_ms = NULL WHERE id = :id AND n_pending > 0"
                f" AND NOT budget_reached AND (goal_samples IS NULL OR goal_samples > {_KEPT})"
            ),
            {"id": row["id"]},
        )
        change = _noted(
            connection, row, order, ("goal", _shown(row["goal_samples"]), _shown(samples))
        )
        open_run(connection, order)
        return change


def set_partition_budget(
    ledger: Ledger, order: Order, name: str, tokens: int | None, seen: Seen | None = None
) -> Change:
    """Set a partition's token budget; one that leaves room opens it again."""
    with ledger.write() as connection:
        row = row_named(connection, order.run_id, name)
        what = Setting(
            what="budget", target=name, table="partition", row_id=row["id"], column="token_budget"
        )
        set_seen(connection, order, what, tokens, seen, now=_now(row["token_budget"]))
        if tokens is None or tokens > row["kept_tokens"] + row["held_tokens"]:
            _reopen_partition(connection, row["id"])
        change = _noted(
            connection, row, order, ("budget", _shown(row["token_budget"]), _shown(tokens))
        )
        open_run(connection, order)
        return change


def set_run_budget(
    ledger: Ledger, order: Order, tokens: int | None, seen: Seen | None = None
) -> Change:
    """Set the run's token budget; one that leaves room opens its partitions again."""
    with ledger.write() as connection:
        run = run_row(connection, order.run_id)
        what = Setting(
            what="budget", target="run", table="run", row_id=order.run_id, column="token_budget"
        )
        set_seen(connection, order, what, tokens, seen, now=_now(run["token_budget"]))
        rows = rows_of(connection, order.run_id)
        used = sum(row["kept_tokens"] + row["held_tokens"] for row in rows)
        if tokens is None or tokens > used:
            for row in rows:
                _reopen_partition(connection, row["id"])
        change = Change(
            target="run", what="budget", old=_shown(run["token_budget"]), new=_shown(tokens)
        )
        note_change(connection, change, order, None)
        open_run(connection, order)
        return change


def _reopen_partition(connection: Connection, partition_id: int) -> None:
    connection.execute(
        text(
            "UPDATE partition SET budget_reached = false,"
            " sealed_at_ms = CASE WHEN n_pending > 0 AND (goal_samples IS NULL"
            f" OR goal_samples > {_KEPT}) THEN NULL ELSE sealed_at_ms END"
            " WHERE id = :id AND budget_reached"
        ),
        {"id": partition_id},
    )


def _now(value: int | None) -> tuple[str, str]:
    """Return a value as it is told, and as an order expects it."""
    return _shown(value), NONE if value is None else str(value)


def _noted(
    connection: Connection, row: RowMapping, order: Order, what_old_new: tuple[str, str, str]
) -> Change:
    what, old, new = what_old_new
    change = Change(target=row["name"], what=what, old=old, new=new)
    note_change(connection, change, order, row["id"])
    return change
