"""The order "stop then": a deadline for a partition or for the run, as people write it.

Owns what the order means; the moment is `core/deadlines.py`'s, the statements the ledger's. A
deadline is kept by the supervisor. Invariant: an order that is refused has changed nothing.
"""

from datetime import datetime

from app.controls import Done, done
from app.core.deadlines import DeadlineError, parse_deadline
from app.core.views import RunView
from app.errors import InputError
from app.ledger.db import Ledger
from app.ledger.deadlines import set_partition_deadline, set_run_deadline
from app.ledger.orders import Order
from app.ledger.seen import Seen


def set_deadline(  # noqa: PLR0913 - what, of what, over what and by whom: each once
    ledger: Ledger,
    run: RunView,
    partition: str | None,
    text: str | None,
    *,
    who: str,
    now: datetime,
    seen: Seen | None = None,
) -> Done:
    """Set when a partition pauses, or the run stops; None or "none": never.

    Moved or taken away after it has passed, it sets going again what it had stopped.
    """
    try:
        at = None if text is None else parse_deadline(text, now)
    except DeadlineError as error:
        raise InputError(f"deadline {error}") from error
    order = Order(run_id=run.id, who=who, now=now)
    if partition is None:
        return done(run, set_run_deadline(ledger, order, at, seen=seen))
    return done(run, set_partition_deadline(ledger, order, partition, at, seen=seen))
