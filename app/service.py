"""The composition root: lock, ledger, recovery, supervisor, tokenizers, API, in this order.

Owns the start and stop order and nothing else. `async with Service(…)` holds the home; leaving it
stops every worker as at a pause and lets the home go. Runs keep their state: what was running goes
on at the next start.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Self

import uvicorn

from app import seams
from app.api.app import create_app
from app.api.listening import QuietServer, bind
from app.api.token_file import home_token
from app.clock import Clock
from app.core.spec import RunSpec, from_json
from app.core.states import RunState
from app.core.types import RunId
from app.core.views import RunView
from app.errors import InputError, LongwatchError
from app.events import Event, Observer, ServiceTrouble
from app.figures import RunFigures, Speedometer, collect
from app.ledger import runs
from app.ledger.db import Ledger
from app.ledger.lock import HomeLock, acquire
from app.ledger.migrate import upgrade
from app.preflight import preflight
from app.reopening import reopen
from app.settings import Settings
from app.submission import submit
from app.supervisor import Supervisor
from app.supervisor.processes import Processes
from app.tokenizing import TokenizingKeeper

STEP_S = 0.5
_ENDED = (RunState.FINISHED, RunState.STOPPED)
_STOP_WAIT_S = 20.0
Say = Callable[[str], None]


class Service:
    """One home's service. See the module."""

    def __init__(self, settings: Settings, clock: Clock, observer: Observer) -> None:
        self.settings = settings
        self.home = settings.home.resolve()
        self.address = ""
        self.token = ""
        self._clock = clock
        self._observer = observer
        self._poke = asyncio.Event()
        self._stack = AsyncExitStack()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="supervisor")
        self._sealer = ThreadPoolExecutor(1, thread_name_prefix="sealer")
        self._speed = Speedometer()
        self._submitting = asyncio.Lock()
        self._guests: set[RunId] = set()
        self._server: uvicorn.Server | None = None
        self._closing = False
        self._trouble = ""

    async def __aenter__(self) -> Self:
        if self.settings.die_at:
            seams.arm(self.settings.die_at)
        if threading.current_thread() is threading.main_thread():
            # Inherited by workers: "look at your orders" must not kill one that is just starting.
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        self.home.mkdir(parents=True, exist_ok=True)
        self._lock = await acquire(self.home, self._clock)
        self._stack.callback(self._lock.release)
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def _open(self) -> None:
        path = self.home / "ledger.db"
        await asyncio.to_thread(upgrade, path)
        self.ledger = Ledger(path)
        self._stack.callback(self.ledger.close)
        self._stack.callback(self._sealer.shutdown)
        self._stack.callback(self._thread.shutdown)
        await asyncio.to_thread(reopen, self.ledger, self._clock, self._observer)
        processes = Processes(self.home, self._lock.descriptor, self._watch_exit)
        self._supervisor = Supervisor(
            self.ledger, self.settings, processes, self._clock, self._observer, self._sealer
        )
        self._tokenizing = TokenizingKeeper(self.ledger, self.settings, self._clock, self.observe)
        await self._listen(self._lock)
        self._loop_task = asyncio.create_task(self._loop(), name="supervisor")

    async def _listen(self, lock: HomeLock) -> None:
        given = self.settings.token.get_secret_value() if self.settings.token else None
        self.token = home_token(self.home, given)
        listener = bind(self.settings.host, self.settings.port)
        host, port = listener.getsockname()[:2]
        self.address = f"http://{host}:{port}"
        app = create_app(self.ledger, self, self.token, port, host=host, clock=self._clock)
        self._server = QuietServer(uvicorn.Config(app, log_config=None, lifespan="off"))
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name="api")
        lock.announce(self.address)

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop workers as at a pause, then everything else, in reverse order."""
        self._closing = True
        self._supervisor.leaving = True
        await self._tokenizing.close()
        deadline = self._clock.monotonic() + _STOP_WAIT_S + self._longest_grace()
        self.poke()
        while not self._supervisor.is_alone() and self._clock.monotonic() < deadline:
            await self._clock.sleep(0.05)
        self._loop_task.cancel()
        await asyncio.gather(self._loop_task, return_exceptions=True)
        if self._server is not None:
            self._server.should_exit = True
            await self._serving
        await self._stack.aclose()

    def _longest_grace(self) -> float:
        live = [run for run in runs.list_runs(self.ledger) if run.state is RunState.RUNNING]
        return max((from_json(run.spec_json).stop_grace_s for run in live), default=0.0)

    def skip_grace(self) -> None:
        """Tell the workers to leave at once: the second signal."""
        self._supervisor.hasten()

    async def _loop(self) -> None:
        while True:
            await self._step()
            try:
                async with asyncio.timeout(0.1 if self._closing else STEP_S):
                    await self._poke.wait()
            except TimeoutError:
                pass
            self._poke.clear()

    async def _step(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._supervisor.step)
            if not self._closing:
                await self._tokenizing.look()
            self._speed.look(self.ledger, self._clock.monotonic())
            self._trouble = ""
        except LongwatchError as error:
            if str(error) != self._trouble:
                self._observer(ServiceTrouble(reason=str(error)))
            self._trouble = str(error)

    def _watch_exit(self, pid: int) -> None:
        """Poke the supervisor as soon as a worker's process ends (called from its thread)."""
        descriptor = os.pidfd_open(pid)

        def ended() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            self.poke()

        loop = self._loop_task.get_loop()
        loop.call_soon_threadsafe(loop.add_reader, descriptor, ended)

    def poke(self) -> None:
        """Let the supervisor look at once."""
        self._poke.set()

    def observe(self, event: Event) -> None:
        self._observer(event)
        self.poke()

    async def submit(self, spec: RunSpec, *, accept_changes: bool, who: str, say: Say) -> RunView:
        """Check everything, then create the run or go on with it."""
        async with self._submitting:
            report = await preflight(spec, self.settings, self._clock, say)
            if report.errors:
                raise InputError("\n".join(report.errors))
            for line in (*report.warnings, *report.notices):
                say(line)
            run = await submit(
                self.ledger,
                self.home,
                spec,
                report,
                accept_changes=accept_changes,
                who=who,
                clock=self._clock,
                say=say,
            )
        self._guests.add(run.id)
        self.poke()
        return run

    async def wait_for_guests(self, say: Say) -> None:
        """Wait until the runs that were submitted to this service have ended, paused ones too."""
        told = False
        while guests := [
            run.name
            for run in runs.list_runs(self.ledger)
            if run.id in self._guests and run.state not in _ENDED
        ]:
            if not told:
                say(f"Still serving {', '.join(guests)}; this ends with it, or with Ctrl-C.")
            told = True
            await self._clock.sleep(STEP_S)

    def figures(self, run_id: RunId) -> RunFigures:
        run = runs.get_run(self.ledger, run_id)
        return collect(self.ledger, run, self._speed, self.settings, self._clock)

    async def wait_for(self, run_id: RunId, changed: Callable[[RunFigures], None]) -> RunView:
        """Tell the figures about once a second until the run is finished or stopped."""
        while True:
            figures = await asyncio.to_thread(self.figures, run_id)
            changed(figures)
            run = runs.get_run(self.ledger, run_id)
            if run.state in _ENDED:
                return run
            await self._clock.sleep(1.0)
