"""Limits that people set while a run is under way: concurrency, goal and token budgets.

Each function is one write transaction that changes the value, opens again what the new value
leaves room for, and notes old and new. Invariant: a partition that was sealed because of its limit
is unsealed in the transaction that lifts the limit, and a finished run runs again with it.
"""

from sqlalchemy import Connection, RowMapping, text

from app.ledger.db import Ledger
from app.ledger.orders import Change, Order, note_change, open_run, row_named, rows_of, run_row

_KEPT = "n_ok + n_truncated + n_empty + n_suspect"
_NONE = "none"
_SHARE = "share of its class"


def _shown(value: int | None, absent: str = _NONE) -> str:
    return absent if value is None else f"{value:,}"


def set_concurrency(ledger: Ledger, order: Order, name: str, n: int | None) -> Change:
    """Set a partition's own concurrency; None gives it back to its class."""
    with ledger.write() as connection:
        row = row_named(connection, order.run_id, name)
        _set(connection, row["id"], "own_concurrency", n)
        old = row["own_concurrency"]
        return _noted(
            connection, row, order, ("concurrency", _shown(old, _SHARE), _shown(n, _SHARE))
        )


def set_goal(ledger: Ledger, order: Order, name: str, samples: int | None) -> Change:
    """Set how many answers are wanted of a partition; a goal that is not met opens it again."""
    with ledger.write() as connection:
        row = row_named(connection, order.run_id, name)
        _set(connection, row["id"], "goal_samples", samples)
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


def set_partition_budget(ledger: Ledger, order: Order, name: str, tokens: int | None) -> Change:
    """Set a partition's token budget; one that leaves room opens it again."""
    with ledger.write() as connection:
        row = row_named(connection, order.run_id, name)
        _set(connection, row["id"], "token_budget", tokens)
        if tokens is None or tokens > row["kept_tokens"] + row["held_tokens"]:
            _reopen_partition(connection, row["id"])
        change = _noted(
            connection, row, order, ("budget", _shown(row["token_budget"]), _shown(tokens))
        )
        open_run(connection, order)
        return change


def set_run_budget(ledger: Ledger, order: Order, tokens: int | None) -> Change:
    """Set the run's token budget; one that leaves room opens its partitions again."""
    with ledger.write() as connection:
        run = run_row(connection, order.run_id)
        connection.execute(
            text("UPDATE run SET token_budget = :n WHERE id = :id"),
            {"n": tokens, "id": order.run_id},
        )
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


def _set(connection: Connection, partition_id: int, column: str, value: int | None) -> None:
    connection.execute(
        text(f"UPDATE partition SET {column} = :value WHERE id = :id"),
        {"value": value, "id": partition_id},
    )


def _noted(
    connection: Connection, row: RowMapping, order: Order, what_old_new: tuple[str, str, str]
) -> Change:
    what, old, new = what_old_new
    change = Change(target=row["name"], what=what, old=old, new=new)
    note_change(connection, change, order, row["id"])
    return change
