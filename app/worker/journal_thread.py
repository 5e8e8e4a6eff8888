"""The journal off the loop: one thread, so that ticks and claims keep their order without locks.

The last tick queues behind whatever the thread still does and is waited for, also by a worker that
is cancelled: it cannot be split.
"""

import asyncio
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from random import Random
from typing import ParamSpec, TypeVar

from app.core.types import Gain
from app.ledger import samples, workers
from app.ledger.claims import Wish
from app.ledger.db import Ledger
from app.worker.call import Call
from app.worker.journal import Claimed, Journal, State, Written
from app.worker.plan import WorkerPlan

P = ParamSpec("P")
R = TypeVar("R")


class JournalThread:
    """See the module. All methods are called on the loop."""

    def __init__(self, ledger: Ledger, plan: WorkerPlan) -> None:
        self._ledger = ledger
        self._plan = plan
        self._journal = Journal(ledger, plan)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="journal")

    async def recent_lengths(self) -> "array[int]":
        """Return the lengths of answers that ended before this worker's time."""
        return await self._run(samples.recent_lengths, self._ledger, self._plan.partition_id)

    async def claim(self, wish: Wish, now: datetime, random: Random) -> list[Claimed]:
        return await self._run(self._journal.claim, wish, now, random)

    async def record(
        self, ended: Sequence[Call], gains: Sequence[tuple[Call, Gain]], state: State, now: datetime
    ) -> Written:
        return await self._run(self._journal.record, ended, gains, state, now)

    async def _run(self, function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, partial(function, *arguments, **options)
        )

    def close(self, ended: Sequence[Call], state: State, reason: str, now: datetime) -> None:
        """Record the last tick and deregister the worker. Blocks until that is done."""
        self._finish(partial(self._leave, ended, state, reason, now))

    def abandon(self) -> None:
        """Write nothing more: the ledger no longer knows this worker."""
        self._finish(self._journal.close)

    def _finish(self, last: Callable[[], None]) -> None:
        try:
            self._executor.submit(last).result()
        finally:
            self._executor.shutdown()

    def _leave(self, ended: Sequence[Call], state: State, reason: str, now: datetime) -> None:
        try:
            self._journal.record_last(ended, state, now)
            workers.deregister(self._ledger, self._plan.worker_id, reason, now)
        finally:
            self._journal.close()
