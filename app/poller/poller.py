"""Looks at every server that a live run names, and keeps what was last seen of each.

Owns which servers are looked at, and the tasks. Invariants: one server has one look at a time; a
look that is late is waited for no longer than `poll_s`, so it delays nobody; only addresses that a
run's spec names, http or https, are ever asked (sec-06).
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from app.clock import Clock
from app.core.loads import ServerLoad
from app.core.spec import from_json
from app.core.spec_checks import server_urls
from app.core.states import RunState
from app.core.types import RunId
from app.errors import LongwatchError
from app.events import Observer, ServiceTrouble
from app.ledger import runs
from app.ledger.db import Ledger
from app.poller.notebook import Notebook
from app.poller.watch import Known, ServerWatch
from app.settings import Settings
from app.sglang.probe import ServerProbe
from app.threads import in_thread

_LIVE = (RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)


class Poller:
    """One per service. `look` and `close` are called on its event loop, `loads` from anywhere."""

    def __init__(
        self, ledger: Ledger, settings: Settings, clock: Clock, observer: Observer
    ) -> None:
        self._ledger = ledger
        self._patience_s = settings.poll_s
        self._api_key = settings.api_key.get_secret_value() if settings.api_key else None
        self._clock = clock
        self._observer = observer
        self._notebook = Notebook(ledger)
        self._users: dict[str, list[RunId]] = {}
        self._watches: dict[str, ServerWatch] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._is_looking = self._is_closed = False
        self._trouble = ""
        self._writing = asyncio.Lock()

    def loads(self) -> Mapping[str, ServerLoad]:
        """Return what was last seen of each server, by address: a copy that nobody changes."""
        return {url: watch.load for url, watch in self._watches.items()}

    async def look(self) -> None:
        """Look at all servers once, at once; return when all have answered or `poll_s` is over.

        A call during another one returns at once. Raises nothing: a ledger that cannot be used now
        is told to the observer, and looked into again.
        """
        if self._is_looking or self._is_closed:
            return
        self._is_looking = True
        try:
            await self._look()
        finally:
            self._is_looking = False

    async def _look(self) -> None:
        try:
            await self._follow_runs()
            told = ""
        except LongwatchError as error:
            told = str(error)  # those that are known already are looked at all the same
        for url, watch in self._watches.items():
            if url not in self._looks:
                self._looks[url] = asyncio.create_task(self._look_at(watch), name=f"look {url}")
        if self._looks:
            await asyncio.wait(self._looks.values(), timeout=self._patience_s)
        for url, task in list(self._looks.items()):
            if task.done():
                del self._looks[url]
                failure = task.exception()
                told = told or (f"the look at {url} failed: {failure!r}" if failure else "")
        self._tell(await self._write() or told)

    async def _look_at(self, watch: ServerWatch) -> None:
        found = await watch.look()
        self._notebook.take(found, self._users.get(watch.url, ()))

    async def _write(self) -> str:
        """Write what was found; return why that was not possible, "" if it was."""
        try:
            async with self._writing:
                await in_thread(self._notebook.write)
        except LongwatchError as error:
            return str(error)
        return ""

    async def _follow_runs(self) -> None:
        """Watch the servers of live runs, and no others."""
        users = await in_thread(self._live_servers)
        new = {url: users[url] for url in users if url not in self._watches}
        known = await in_thread(partial(self._known, new)) if new else {}
        for url in [url for url in self._watches if url not in users]:
            await self._drop(url)
        self._users = users
        made = {url: self._watch(url, known[url]) for url in new}
        self._watches = {**self._watches, **made}

    def _live_servers(self) -> dict[str, list[RunId]]:
        users: dict[str, list[RunId]] = {}
        for run in runs.list_runs(self._ledger):
            if run.state in _LIVE:
                for url in from_json(run.spec_json).server_urls:
                    if not server_urls([url])[1]:
                        users.setdefault(url, []).append(run.id)
        return users

    def _known(self, new: Mapping[str, list[RunId]]) -> dict[str, Known]:
        return {url: self._notebook.known(url, run_ids) for url, run_ids in new.items()}

    def _watch(self, url: str, known: Known) -> ServerWatch:
        return ServerWatch(url, ServerProbe(url, api_key=self._api_key), known, self._clock)

    async def _drop(self, url: str) -> None:
        watch = self._watches[url]
        self._watches = {each: one for each, one in self._watches.items() if each != url}
        task = self._looks.pop(url, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await watch.close()

    def _tell(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            self._observer(ServiceTrouble(reason=trouble))
        self._trouble = trouble

    async def close(self) -> None:
        """End all looks and connections; nothing is asked any more."""
        self._is_closed = True
        for url in list(self._watches):
            await self._drop(url)
        await self._write()
