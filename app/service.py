"""The composition root: lock, ledger, recovery, recorder, supervisor, poller, API, in this order.

Owns the start and stop order and nothing else. `async with Service(…)` holds the home; leaving it
stops every worker as at a pause and lets the home go. Runs keep their state: what was running goes
on at the next start.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Self

import uvicorn

from app import seams
from app.api.app import NO_PAGES, create_app
from app.api.listening import QuietServer, bind
from app.clock import Clock
from app.core.loads import ServerLoad
from app.core.series import Chart
from app.core.spec import RunSpec, from_json
from app.core.states import RunState
from app.core.types import PartitionId, RunId
from app.core.views import RunView
from app.errors import InputError
from app.events import Observer
from app.figures import RunFigures
from app.gate import Rotation, allowed_hosts, open_keys
from app.ledger import runs
from app.ledger.db import Ledger
from app.ledger.lock import HomeLock, acquire
from app.ledger.migrate import upgrade
from app.machinery import Machinery
from app.notifying import Told, page_address
from app.preflight import preflight
from app.reopening import reopen
from app.settings import Settings
from app.submission import Added, add_to_run, submit
from app.web.assets import offering
from app.web.site import Site

GUESTS_S, SHOW_S = 0.5, 1.0
_ENDED = (RunState.FINISHED, RunState.STOPPED)
_STOP_WAIT_S = 20.0
_GOODBYE_S = 1  # for answers that are on their way; streams are told to end before
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
        self._stack = AsyncExitStack()
        self._submitting = asyncio.Lock()
        self._started_at = clock.now()
        self._guests: set[RunId] = set()
        self._server: uvicorn.Server | None = None
        self._site: Site | None = None
        self._rotation: Rotation | None = None

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
        await asyncio.to_thread(reopen, self.ledger, self._clock, self._observer)
        self._machinery = Machinery(
            self.ledger,
            self.settings,
            self._clock,
            self._observer,
            self._lock.descriptor,
            self._after_look,
        )
        self._stack.push_async_callback(self._machinery.close)
        await asyncio.to_thread(self._machinery.notifier.begin)
        await self._listen(self._lock)
        self._machinery.notifier.page_address = page_address(self.settings, self.address)
        self._machinery.start()

    async def _listen(self, lock: HomeLock) -> None:
        listener = bind(self.settings.host, self.settings.port)
        host, port = listener.getsockname()[:2]
        self.address = f"http://{host}:{port}"
        keys, self._rotation = open_keys(self.home, self.settings, host, port, self._clock)
        self.token = keys.token
        hosts = allowed_hosts(host, port, self.settings.allowed_hosts)
        if not self.settings.no_web:
            offered = offering(self.settings.assets, self.settings.offline_assets)
            self._site = Site(self.ledger, self, keys, self._clock, offered)
        pages = self._site.pages if self._site else NO_PAGES
        app = create_app(self.ledger, self, keys, hosts, clock=self._clock, pages=pages)
        # who connects is the socket's word, never a header's
        configuration = uvicorn.Config(
            app,
            log_config=None,
            lifespan="off",
            proxy_headers=False,
            timeout_graceful_shutdown=_GOODBYE_S,
        )
        self._server = QuietServer(configuration)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name="api")
        lock.announce(self.address)

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop workers as at a pause, then everything else, in reverse order."""
        await self._machinery.stop_workers(_STOP_WAIT_S + self._longest_grace())
        if self._site is not None:
            states = {run.state for run in runs.list_runs(self.ledger)}
            if RunState.RUNNING not in states:  # of one that goes on it would say less than before
                await self._machinery.look_last()
            await self._site.close()
        if self._server is not None:
            self._server.should_exit = True
            await self._serving
        await self._stack.aclose()

    def _longest_grace(self) -> float:
        live = [run for run in runs.list_runs(self.ledger) if run.state is RunState.RUNNING]
        return max((from_json(run.spec_json).stop_grace_s for run in live), default=0.0)

    def skip_grace(self) -> None:
        """Tell the workers to leave at once: the second signal."""
        self._machinery.hasten()

    async def _after_look(self) -> None:
        """Tell those who look on that there are new figures, or that there are none."""
        if self._rotation is not None:
            self._rotation.take(await asyncio.to_thread(self._rotation.changed))
        if self._site is not None:
            await self._site.live.tick()

    def poke(self) -> None:
        """Let supervisor and recorder look at once: somebody has changed something."""
        self._machinery.poke()

    async def submit(
        self,
        spec: RunSpec,
        *,
        accept_changes: bool,
        who: str,
        say: Say,
        is_why_it_serves: bool = False,
    ) -> RunView:
        """Check everything, then create the run or go on with it.

        `is_why_it_serves`: the service was started for this run, by the same command.
        """
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
                started_at=self._started_at if is_why_it_serves else None,
            )
        self._guests.add(run.id)
        self.poke()
        return run

    async def add(self, run_id: RunId, spec: RunSpec, *, who: str, say: Say) -> Added:
        """Add the partitions of a spec that the run does not have yet."""
        async with self._submitting:
            added = await add_to_run(
                self.ledger, self.settings, run_id, spec, who=who, clock=self._clock, say=say
            )
        self._guests.add(run_id)
        self.poke()
        return added

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
            await self._clock.sleep(GUESTS_S)

    def figures(self, run_id: RunId) -> RunFigures:
        return self._machinery.recorder.figures(run_id)

    def chart(
        self,
        run_id: RunId,
        span_s: float | None,
        n_buckets: int,
        partition_id: PartitionId | None = None,
    ) -> Chart:
        return self._machinery.recorder.chart(run_id, span_s, n_buckets, partition_id)

    def loads(self) -> Mapping[str, ServerLoad]:
        return self._machinery.poller.loads()

    def notified(self) -> tuple[str, ...]:
        return tuple(each.name for each in self._machinery.notifier.targets)

    async def notify_test(self, who: str) -> tuple[Told, ...]:
        """Send a test message to every target that is set."""
        return await self._machinery.notifier.test(who)

    async def wait_for(self, run_id: RunId, changed: Callable[[RunFigures], None]) -> RunView:
        """Tell the figures about once a second until the run is finished or stopped."""
        while True:
            figures = await asyncio.to_thread(self.figures, run_id)
            changed(figures)
            if figures.state in _ENDED:
                return runs.get_run(self.ledger, run_id)
            await self._clock.sleep(SHOW_S)
