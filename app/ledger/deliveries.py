"""Activity entries on their way to somebody outside: one row per entry and target.

Owns which entries are told (conditions, a run's end), in which order, and what became of each.
How far a target has been fed is its own newest row, so nothing else must be kept in step: an entry
after that row is taken once, whenever the service died. A target's first row is a mark: what
happened before it is never told. Rows of one run are handed out in order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, text

from app.clock import from_ms, to_ms
from app.core.conditions import ConditionKind
from app.core.messages import OVER
from app.core.types import RunId
from app.ledger.activity import Deed, note
from app.ledger.db import Ledger

WHO = "system"
FINISHED, STOPPED = "run: running -> finished", "workers gone"
_NOTABLE = (
    "a.run_id IS NOT NULL AND ((a.who = :who AND a.event IN :kinds) OR a.event = :stopped"
    " OR (a.event = 'state' AND a.partition_id IS NULL AND a.detail = :finished))"
)
_AFTER = (
    "(SELECT d.activity_id FROM delivery d WHERE d.target = :target"
    " ORDER BY d.activity_id DESC LIMIT 1)"
)
_NEW = text(
    f"SELECT a.id FROM activity a WHERE a.id > {_AFTER} AND {_NOTABLE} ORDER BY a.id"
).bindparams(bindparam("kinds", expanding=True))
# by ix_delivery_waiting; whoever waits for a second try holds up its own run only
_NEXT = text(
    "SELECT d.id, d.n_tries, a.id AS activity_id, a.run_id, a.partition_id, a.at_ms, a.event,"
    " a.detail, r.name AS run, coalesce(p.name, '') AS partition FROM delivery d"
    " JOIN activity a ON a.id = d.activity_id JOIN run r ON r.id = a.run_id"
    " LEFT JOIN partition p ON p.id = a.partition_id"
    " WHERE d.state = 'waiting' AND d.target = :target AND d.next_try_at_ms <= :now"
    " AND NOT EXISTS (SELECT 1 FROM delivery o JOIN activity b ON b.id = o.activity_id"
    " WHERE o.state = 'waiting' AND o.target = d.target AND o.activity_id < d.activity_id"
    " AND b.run_id = a.run_id) ORDER BY d.activity_id LIMIT 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An entry that is due for a target. `began_at` is when the condition that it ends began."""

    id: int
    n_tries: int
    activity_id: int
    run_id: RunId
    run: str
    partition: str
    at: datetime
    event: str
    detail: str
    began_at: datetime | None

    @property
    def is_end(self) -> bool:
        return self.detail.startswith(OVER)


def set_targets(
    ledger: Ledger, shown: Mapping[str, str], known: tuple[str, ...], now: datetime
) -> None:
    """Begin to feed the targets that are set now, by name; let go of those that are not any more.

    A target that comes (back) is fed from here on; what waited for one that went is given up.
    """
    with ledger.write() as connection:
        for target in known:
            is_fed = _newest_state(connection, target) not in (None, "off")
            if target in shown and not is_fed:
                said = f"{shown[target]} is told of conditions and ends from here on"
                _mark(connection, target, "mark", said, now)
            elif target not in shown and is_fed:
                connection.execute(
                    text(
                        "UPDATE delivery SET state = 'given up', said = 'no longer set'"
                        " WHERE state = 'waiting' AND target = :target"
                    ),
                    {"target": target},
                )
                _mark(connection, target, "off", f"no {target} is told any more", now)


def _newest_state(connection: Connection, target: str) -> str | None:
    row = connection.execute(
        text("SELECT state FROM delivery WHERE target = :target ORDER BY activity_id DESC LIMIT 1"),
        {"target": target},
    ).first()
    return None if row is None else str(row.state)


def _mark(connection: Connection, target: str, state: str, said: str, now: datetime) -> None:
    note(connection, Deed(who=WHO, event="notification", detail=said), now)
    connection.execute(
        text(
            "INSERT INTO delivery (activity_id, target, state, n_tries, next_try_at_ms, said)"
            " VALUES ((SELECT max(id) FROM activity), :target, :state, 0, 0, '')"
        ),
        {"target": target, "state": state},
    )


def enqueue(ledger: Ledger, target: str) -> int:
    """Add a row for each entry since the target's newest one; return how many there were."""
    values = {
        "target": target,
        "who": WHO,
        "kinds": [str(kind) for kind in ConditionKind],
        "stopped": STOPPED,
        "finished": FINISHED,
    }
    with ledger.read() as connection:
        if connection.execute(_NEW, values).first() is None:
            return 0
    with ledger.write() as connection:
        found = connection.execute(_NEW, values).scalars().all()
        for activity_id in found:
            connection.execute(
                text(
                    "INSERT INTO delivery (activity_id, target, state, n_tries, next_try_at_ms,"
                    " said) VALUES (:activity, :target, 'waiting', 0, 0, '')"
                ),
                {"activity": activity_id, "target": target},
            )
    return len(found)


def next_due(ledger: Ledger, target: str, now: datetime) -> Waiting | None:
    """Return the oldest entry that is to be told now, None if there is none."""
    with ledger.read() as connection:
        row = connection.execute(_NEXT, {"target": target, "now": to_ms(now)}).first()
        if row is None:
            return None
        began_ms = None
        if row.detail.startswith(OVER):
            began_ms = connection.execute(
                text(
                    "SELECT at_ms FROM activity WHERE run_id = :run AND id < :id AND who = :who"
                    " AND event = :event AND coalesce(partition_id, 0) = coalesce(:partition, 0)"
                    " AND substr(detail, 1, length(:over)) <> :over ORDER BY id DESC LIMIT 1"
                ),
                {
                    "run": row.run_id,
                    "id": row.activity_id,
                    "who": WHO,
                    "event": row.event,
                    "partition": row.partition_id,
                    "over": OVER,
                },
            ).scalar()
    return Waiting(
        id=row.id,
        n_tries=row.n_tries,
        activity_id=row.activity_id,
        run_id=RunId(row.run_id),
        run=row.run,
        partition=row.partition,
        at=from_ms(row.at_ms),
        event=row.event,
        detail=row.detail,
        began_at=None if began_ms is None else from_ms(began_ms),
    )


def sent(ledger: Ledger, waiting: Waiting, said: str) -> bool:
    """Say that it was told; False if the row does not wait (any more)."""
    with ledger.write() as connection:
        return _move(connection, waiting, "sent", said, 0)


def put_off(ledger: Ledger, waiting: Waiting, said: str, next_try_at: datetime) -> bool:
    """Say that a try failed and when the next one is due."""
    with ledger.write() as connection:
        return _move(connection, waiting, "waiting", said, to_ms(next_try_at))


def give_up(ledger: Ledger, waiting: Waiting, said: str, deed: Deed, now: datetime) -> bool:
    """Say that it will never be told, with the entry that says so to the operator."""
    with ledger.write() as connection:
        is_mine = _move(connection, waiting, "given up", said, 0)
        if is_mine:
            note(connection, deed, now)
    return is_mine


def _move(connection: Connection, waiting: Waiting, state: str, said: str, next_ms: int) -> bool:
    moved = connection.execute(
        text(
            "UPDATE delivery SET state = :state, n_tries = n_tries + 1, said = :said,"
            " next_try_at_ms = :next WHERE id = :id AND state = 'waiting' AND n_tries = :tries"
        ),
        {
            "state": state,
            "said": said,
            "next": next_ms,
            "id": waiting.id,
            "tries": waiting.n_tries,
        },
    ).rowcount
    return bool(moved)
