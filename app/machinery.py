"""What works beside the API: supervisor, tokenizers, poller, recorder, notifier, and their rounds.

Owns their making, their threads and pace, and the order in which they end: workers first, then the
rounds, then what they look with; what the last look found is still told. Nothing here knows of a
page. Called on the event loop, but for `recorder` and `poller.loads`, which anybody may ask.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import partial

from app.auto_pause import AutoPause
from app.clock import Clock
from app.events import Event, Observer, RunMoved
from app.ledger.db import Ledger
from app.notifying import Notifier, targets_of
from app.poller import Poller
from app.recorder import Recorder
from app.rounds import Round
from app.settings import Settings
from app.supervisor import Supervisor
from app.supervisor.processes import Processes
from app.tokenizing import TokenizingKeeper

SUPERVISE_S, _LEAVING_S, RECORD_S = 0.5, 0.1, 1.0
_ALONE_POLL_S = 0.05
_LAST_LOOK_S = 0.5
Look = Callable[[], Awaitable[None]]


class Machinery:
    """See the module. `after_look` is awaited after each look of the recorder, good or not."""

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        clock: Clock,
        observer: Observer,
        lock_descriptor: int,
        after_look: Look,
    ) -> None:
        self._clock = clock
        self._observer = observer
        self._after_look = after_look
        self._loop = asyncio.get_running_loop()
        self._stack = AsyncExitStack()
        self._thread, self._sealer, self._looker, self._keeper = (
            ThreadPoolExecutor(1, thread_name_prefix=name)
            for name in ("supervisor", "sealer", "recorder", "keeper")
        )
        self.poller = Poller(ledger, settings, clock, observer)
        self.recorder = Recorder(ledger, settings, clock, observer, self.poller.loads)
        self.notifier = Notifier(ledger, targets_of(settings), clock, observer)
        processes = Processes(settings.home.resolve(), lock_descriptor, self._watch_exit)
        self._supervisor = Supervisor(ledger, settings, processes, clock, self._hear, self._sealer)
        self._tokenizing = TokenizingKeeper(ledger, settings, clock, self._observe)
        self._supervising = self._round(
            "supervisor",
            self._supervise,
            lambda: _LEAVING_S if self._supervisor.leaving else SUPERVISE_S,
        )
        self._recording = self._round("recorder", self._record, lambda: RECORD_S)
        pausing = AutoPause(ledger, clock, self.recorder.live, self._changed_here)
        self._keep = self._in(self._keeper, self.recorder.keep)
        self._keeping = self._round("keeper", self._keep_and_tell, lambda: RECORD_S)
        self._telling = tuple(
            self._round(each.name, partial(self.notifier.look, each), lambda: RECORD_S)
            for each in self.notifier.targets
        )
        self._rounds = (
            self._supervising,
            self._recording,
            self._keeping,
            self._round("auto-pause", self._in(self._keeper, pausing.step), lambda: RECORD_S),
            self._round("poller", self.poller.look, lambda: settings.poll_s),
            *self._telling,
        )
        self._end_in_order()

    def _round(self, name: str, look: Look, every_s: Callable[[], float]) -> Round:
        return Round(name, look, every_s, self._clock, self._observer)

    def _end_in_order(self) -> None:
        """Say what is to end; the last named ends first."""
        for thread in (self._sealer, self._thread, self._looker):
            self._stack.callback(thread.shutdown)
        self._stack.push_async_callback(self.notifier.close)  # tells what the last look found
        self._stack.push_async_callback(self._in(self._looker, self.recorder.close))
        self._stack.callback(self._keeper.shutdown)
        self._stack.push_async_callback(self.poller.close)
        for each in self._rounds:
            self._stack.push_async_callback(each.stop)

    def _in(self, thread: ThreadPoolExecutor, work: Callable[[], None]) -> Look:
        """Return the work as something that is done in that thread."""

        async def done() -> None:
            await self._loop.run_in_executor(thread, work)

        return done

    def start(self) -> None:
        for each in self._rounds:
            each.start()

    async def stop_workers(self, within_s: float) -> None:
        """Stop all workers as at a pause; recorder and poller go on meanwhile."""
        self._supervisor.leaving = True
        await self._tokenizing.close()
        deadline = self._clock.monotonic() + within_s
        self._supervising.poke()
        while not self._supervisor.is_alone() and self._clock.monotonic() < deadline:
            await self._clock.sleep(_ALONE_POLL_S)
        await self._supervising.stop()

    async def look_last(self) -> None:
        """Look once more and no more: those who look on see how it ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_LOOK_S):
                await self._recording.finish()

    async def close(self) -> None:
        """End everything that `stop_workers` has left."""
        await self._stack.aclose()

    def hasten(self) -> None:
        """Tell the workers to leave at once."""
        self._supervisor.hasten()

    def poke(self) -> None:
        """Let supervisor and recorder look at once: somebody has changed something."""
        self.recorder.distrust()
        self._supervising.poke()
        self._recording.poke()

    def _changed_here(self) -> None:
        """Take it that a thread of ours has changed something."""
        self._loop.call_soon_threadsafe(self.poke)

    async def _supervise(self) -> None:
        await self._loop.run_in_executor(self._thread, self._supervisor.step)
        if not self._supervisor.leaving:
            await self._tokenizing.look()
        self.recorder.supervised()

    async def _record(self) -> None:
        try:
            await self._loop.run_in_executor(self._looker, self.recorder.look)
            if self.recorder.has_news:
                self._keeping.poke()
        finally:
            await self._after_look()

    async def _keep_and_tell(self) -> None:
        """Keep what is due; what has begun or ended is told at once, not a round later."""
        has_news = self.recorder.has_news
        await self._keep()
        if has_news:
            for each in self._telling:
                each.poke()

    def _watch_exit(self, pid: int) -> None:
        """Poke the supervisor as soon as a worker's process ends (called from its thread)."""
        descriptor = os.pidfd_open(pid)

        def ended() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            self._supervising.poke()

        self._loop.call_soon_threadsafe(self._loop.add_reader, descriptor, ended)

    def _observe(self, event: Event) -> None:
        self._observer(event)
        self._supervising.poke()

    def _hear(self, event: Event) -> None:
        """Take an event of the supervisor, in its thread."""
        self._observer(event)
        if isinstance(event, RunMoved):
            self.recorder.distrust()
