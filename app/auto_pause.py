"""Pauses partitions where going on would only make waste: the effect of conditions that say so.

Owns the one guarded move by `system`, with the condition as its reason. Which conditions those are,
and after how many outcomes, is `core/conditions_of_outcomes.py`'s: once paused none says so, and
one that a person resumed says so only after a whole further window. Another server pauses the
whole run; the supervisor sees to that, for it is a worker that finds out.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from app.clock import Clock
from app.core.format import one_line
from app.core.states import RunState
from app.core.types import RunId
from app.errors import ConflictError
from app.figures import RunFigures
from app.ledger.db import Ledger
from app.ledger.orders import Order, move_partitions

WHO = "system"


class AutoPause:
    """See the module. `step` blocks for a moment: take a thread. `acted` is told of each pause."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        live: Callable[[], Sequence[RunFigures]],
        acted: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._live = live
        self._acted = acted
        self._done: dict[RunId, datetime] = {}

    def step(self) -> None:
        """Pause what the last look found to be waste. LedgerError: tried again at the next call."""
        for run in self._live():
            wasting = [one for one in run.conditions if one.wastes]
            if run.state is not RunState.RUNNING or not wasting:
                continue
            if self._done.get(run.run_id) == run.at:
                continue  # of what this look saw, all is done; a person may have resumed it since
            order = Order(run_id=run.run_id, who=WHO, now=self._clock.now())
            for one in wasting:
                reason = one_line(f"{one.kind}: {one.sentence}")
                with suppress(ConflictError):  # paused meanwhile, by a person or for another reason
                    move_partitions(self._ledger, order, [one.partition], "pause", reason=reason)
                    self._acted()
            self._done[run.run_id] = run.at
