"""Waiting for what a test cannot be told of: a condition, bounded; and a server kept alive.

Owns the one place of the worker tests that looks again and again. The bound is for hangs only:
no test asserts how fast something is, unless its case says within how many seconds.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

from app.core.types import WorkerId
from app.events import Event
from app.simulator.server import SimulatorThread
from app.worker.link import ServerLink
from app.worker.worker import Worker

HANG_BOUND_S = 90.0
_LOOK_S = 0.01


async def wait_until(
    holds: Callable[[], object], what: str, *, within_s: float = HANG_BOUND_S
) -> None:
    """Return as soon as the condition holds; fail with `what` if it does not in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while not holds():
        if loop.time() > deadline:
            raise AssertionError(f"waited {within_s:g} s for {what}")
        await asyncio.sleep(_LOOK_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A worker that is at work beside the test."""

    id: WorkerId
    worker: Worker
    events: list[Event]
    task: "asyncio.Task[None]"

    @property
    def links(self) -> list[ServerLink]:
        return self.worker._links

    async def until(
        self, holds: Callable[[], object], what: str, *, within_s: float = HANG_BOUND_S
    ) -> None:
        """Wait for the condition; fail at once if the worker has gone with an error."""
        await wait_until(lambda: self.task.done() or holds(), what, within_s=within_s)
        if self.task.done() and not holds():
            self.task.result()
            raise AssertionError(f"the worker left ({self.worker.exit_reason}) before {what}")

    async def gone(self, *, within_s: float = HANG_BOUND_S) -> None:
        await asyncio.wait_for(asyncio.shield(self.task), within_s)

    def heard(self, kind: type[Event]) -> list[Event]:
        return [event for event in tuple(self.events) if isinstance(event, kind)]


@asynccontextmanager
async def kept_alive(
    simulator: SimulatorThread, times_lost: Callable[[], int]
) -> AsyncIterator[None]:
    """Start the server again whenever it has died and been missed, as a watchdog does."""

    async def watch() -> None:
        for n_deaths in count(1):
            while simulator.alive or times_lost() < n_deaths:  # noqa: ASYNC110 - a thread's end
                await asyncio.sleep(_LOOK_S)
            await asyncio.to_thread(simulator.start)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            raise AssertionError("the server could not be started again") from task.exception()


async def die(simulator: SimulatorThread) -> None:
    """End the server at once, as a killed process ends."""
    await asyncio.to_thread(simulator.stop)


async def come_back(simulator: SimulatorThread) -> None:
    await asyncio.to_thread(simulator.start)


@asynccontextmanager
async def cutting_port(port: int) -> AsyncIterator[list[float]]:
    """Stand where a server stood: count who comes, and cut each off at once."""
    came: list[float] = []

    def cut(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(asyncio.get_running_loop().time())
        writer.transport.abort()

    listener = await asyncio.start_server(cut, "127.0.0.1", port, reuse_address=True)
    async with listener:
        yield came
