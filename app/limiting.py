"""Limits that people set: concurrency, token budgets, goals.

Owns what the orders mean and which values they take; the statements are the ledger's. Invariant: an
order that is refused has changed nothing, also where a value is not what whoever ordered had `seen`
(ChangedError).
"""

from datetime import datetime

from app.controls import MAX_CONCURRENCY, Done, done
from app.core.views import RunView
from app.errors import InputError
from app.ledger import limits
from app.ledger.db import Ledger
from app.ledger.orders import Order
from app.ledger.seen import Seen


def set_concurrency(  # noqa: PLR0913 - what, of what, over what and by whom: each once
    ledger: Ledger,
    run: RunView,
    partition: str,
    n: int | None,
    *,
    who: str,
    now: datetime,
    seen: Seen | None = None,
) -> Done:
    """Set a partition's own concurrency; None: its share of the class again."""
    if n is not None and not 1 <= n <= MAX_CONCURRENCY:
        raise InputError(
            f"concurrency {n} is not a whole number from 1 to {MAX_CONCURRENCY:,}",
            hint="To send nothing, pause the partition",
        )
    order = Order(run_id=run.id, who=who, now=now)
    return done(run, [limits.set_concurrency(ledger, order, partition, n, seen)])


def set_budget(  # noqa: PLR0913 - what, of what, over what and by whom: each once
    ledger: Ledger,
    run: RunView,
    partition: str | None,
    tokens: int | None,
    *,
    who: str,
    now: datetime,
    seen: Seen | None = None,
) -> Done:
    """Set the token budget of a partition, or of the run; None takes it away."""
    _positive("budget", tokens)
    order = Order(run_id=run.id, who=who, now=now)
    if partition is None:
        return done(run, [limits.set_run_budget(ledger, order, tokens, seen)])
    return done(run, [limits.set_partition_budget(ledger, order, partition, tokens, seen)])


def set_goal(  # noqa: PLR0913 - what, of what, over what and by whom: each once
    ledger: Ledger,
    run: RunView,
    partition: str,
    n: int | None,
    *,
    who: str,
    now: datetime,
    seen: Seen | None = None,
) -> Done:
    """Set how many answers are wanted of a partition; None: as many as there are prompts."""
    _positive("goal", n)
    order = Order(run_id=run.id, who=who, now=now)
    return done(run, [limits.set_goal(ledger, order, partition, n, seen)])


def _positive(what: str, n: int | None) -> None:
    if n is not None and n < 1:
        raise InputError(f"{what} {n} is not above 0", hint="Leave it out to have none")
