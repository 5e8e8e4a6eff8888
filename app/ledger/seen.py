"""What a person had seen when he gave an order, and the refusal where it is another value now.

Owns the guard that stands in the statement of the order itself, and the words that say who was
quicker. Invariant: an order over a value that nobody has seen changes nothing; one that asks for
what holds already is no conflict.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.clock import from_ms
from app.core.format import span_of
from app.errors import ChangedError
from app.ledger.orders import Order

NONE = "none"
SHARE = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The value that was seen; None: that there was none."""

    value: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One column of one row to be set: of a partition, or of the run itself."""

    what: str
    target: str
    table: str
    row_id: int
    column: str

    @property
    def partition_id(self) -> int | None:
        return self.row_id if self.table == "partition" else None


def set_seen(
    connection: Connection,
    order: Order,
    setting: Setting,
    value: int | None,
    seen: Seen | None,
    *,
    now: tuple[str, str],
) -> None:
    """Set the column where it still holds what was `seen` (None: whatever it holds).

    `now` is what it holds as it is told and as an order expects it. ChangedError if it is another.
    """
    column = setting.column
    guard = "" if seen is None else f" AND ({column} IS :seen OR {column} IS :value)"
    moved = connection.execute(
        text(f"UPDATE {setting.table} SET {column} = :value WHERE id = :id{guard}"),
        {"value": value, "id": setting.row_id, "seen": seen.value if seen else None},
    ).rowcount
    if not moved:
        raise _changed(connection, order, setting, now)


def _changed(
    connection: Connection, order: Order, setting: Setting, now: tuple[str, str]
) -> ChangedError:
    shown, expected = now
    last = connection.execute(
        text(
            "SELECT who, at_ms FROM activity WHERE run_id = :run AND event = :what"
            " AND partition_id IS :partition ORDER BY id DESC LIMIT 1"
        ),
        {"run": order.run_id, "what": setting.what, "partition": setting.partition_id},
    ).first()
    by = "" if last is None else f" by {last.who} {span_of(from_ms(last.at_ms), order.now)} ago"
    return ChangedError(
        f"{setting.target}: {setting.what} was changed to {shown}{by}; nothing was changed now",
        now=expected,
        hint=f"Look at it, and order again with expect {expected}",
    )
