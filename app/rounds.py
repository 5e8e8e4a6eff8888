"""Looks that are repeated as long as the service lives: supervisor, recorder, poller.

Owns the pace, the poke that shortens a pause, and that no look ends its round: trouble is told once
and tried again. Invariant: never two looks of one round at a time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from app.clock import Clock
from app.errors import LongwatchError
from app.events import Observer, ServiceTrouble

logger = logging.getLogger("longwatch")
_LEAST_PAUSE_S = 0.05


class Round:
    """One look, again and again. `every_s` is asked before each pause."""

    def __init__(
        self,
        name: str,
        look: Callable[[], Awaitable[None]],
        every_s: Callable[[], float],
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._name = name
        self._look = look
        self._every_s = every_s
        self._clock = clock
        self._observer = observer
        self._poke = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._trouble = ""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self._name)

    def poke(self) -> None:
        """Look at once, or once more if a look is under way. Called on the event loop."""
        self._poke.set()

    async def stop(self) -> None:
        """End it; what its look had begun in a thread may still run."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def finish(self) -> None:
        """End it with one more look."""
        await self.stop()
        await self._look_once()

    async def _run(self) -> None:
        while True:
            began_s = self._clock.monotonic()
            self._poke.clear()
            await self._look_once()
            left_s = began_s + self._every_s() - self._clock.monotonic()
            try:
                async with asyncio.timeout(max(_LEAST_PAUSE_S, left_s)):
                    await self._poke.wait()
            except TimeoutError:
                pass

    async def _look_once(self) -> None:
        try:
            await self._look()
        except LongwatchError as error:
            self._tell(str(error))
        except Exception as error:
            fault = f"fault of Longwatch in the {self._name}: {error!r}"
            if fault != self._trouble:
                logger.exception("internal error in the %s", self._name)
            self._tell(fault)
        else:
            self._trouble = ""

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._observer(ServiceTrouble(reason=trouble))
        self._trouble = trouble
