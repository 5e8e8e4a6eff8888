"""Keeps one tokenizing task per scanned partition of a live run, and while later turns wait there.

Owns when a task begins and ends: with the run and the partition at work, and with the settings
that it began with. A partition that cannot be tokenized is paused with the reason; resuming it
tries again. Invariant: never two tasks for one partition.
"""

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import dataclass

from app.clock import Clock
from app.core.spec import from_json
from app.core.states import PartitionState, RunState
from app.core.types import PartitionId
from app.core.views import PartitionView, RunView
from app.errors import ConflictError, LongwatchError
from app.events import Event, Observer
from app.files.tokens import token_path
from app.ledger import runs, turns
from app.ledger.db import Ledger
from app.ledger.orders import Order, move_partitions
from app.settings import Settings
from app.sglang.client import ServerClient
from app.submission.prompt_digests import PROMPTS
from app.threads import in_thread
from app.tokenizing.partition import TokenizeOrder, tokenize_partition
from app.tokenizing.servers import TokenizeServers

_SCANNING, _SCANNED = "scanning", "scanned"
Key = tuple[PartitionId, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizingStopped(Event):
    """A partition's prompts cannot be tokenized; it was paused with this reason."""

    partition: str
    reason: str

    def level(self) -> int:
        return 40  # logging.ERROR: somebody has to act


class TokenizingKeeper:
    """The tokenizing of all runs of a home."""

    def __init__(
        self, ledger: Ledger, settings: Settings, clock: Clock, observer: Observer
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._clock = clock
        self._observer = observer
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    async def look(self) -> None:
        """Begin what has to be tokenized and is not yet; end what should no longer be."""
        wanted = {_key(run, partition): (run, partition) for run, partition in await self._found()}
        await self._end([key for key in self._tasks if key not in wanted or self._is_over(key)])
        for key, (run, partition) in wanted.items():
            if key not in self._tasks:
                work = self._work(run, partition)
                self._tasks[key] = asyncio.create_task(work, name=f"tokenizing {partition.name}")

    async def _found(self) -> list[tuple[RunView, PartitionView]]:
        return await in_thread(self._scanned)

    def _is_over(self, key: Key) -> bool:
        return self._tasks[key].done()

    def _scanned(self) -> list[tuple[RunView, PartitionView]]:
        waited_for = turns.waited_for(self._ledger)
        return [
            (run, partition)
            for run in runs.list_runs(self._ledger)
            if run.state is RunState.RUNNING
            for partition in runs.partitions_of(self._ledger, run.id)
            if partition.state is PartitionState.ACTIVE
            and (partition.intake == _SCANNED or partition.id in waited_for)
            and partition.intake != _SCANNING
        ]

    async def close(self) -> None:
        """End all tasks; what they had not recorded is asked for again at the next start."""
        await self._end(list(self._tasks))

    async def _end(self, keys: list[Key]) -> None:
        tasks = [self._tasks.pop(key) for key in keys]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, run: RunView, partition: PartitionView) -> None:
        try:
            await self._tokenize(run, partition)
        except LongwatchError as error:
            await self._pause(run, partition, str(error))
        except Exception as error:
            await self._pause(run, partition, f"fault of Longwatch: {error!r}")
            raise

    async def _tokenize(self, run: RunView, partition: PartitionView) -> None:
        spec = from_json(run.spec_json)
        key = self._settings.api_key.get_secret_value() if self._settings.api_key else None
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(ServerClient(url, api_key=key))
                for url in spec.server_urls
            ]
            order = TokenizeOrder(
                partition=partition,
                spec=spec,
                token_path=token_path(self._settings.home, run.id, partition.name),
                prompts_sha256=digest_of(run, partition.name),
                stays=True,
            )
            servers = TokenizeServers(clients, self._clock, self._observer)
            await tokenize_partition(self._ledger, order, servers, self._clock, self._observer)

    async def _pause(self, run: RunView, partition: PartitionView, reason: str) -> None:
        self._observer(TokenizingStopped(partition=partition.name, reason=reason))
        order = Order(run_id=run.id, who="system", now=self._clock.now())
        try:
            await in_thread(
                lambda: move_partitions(
                    self._ledger, order, [partition.name], "pause", reason=reason
                )
            )
        except ConflictError:
            return  # somebody has paused it already


def digest_of(run: RunView, partition: str) -> str | None:
    """Return the digest of the prompt file that the run was started with, None if not stored."""
    stored = json.loads(run.fingerprint_json).get("fingerprint") or {}
    found = stored.get(f"{PROMPTS}{partition}")
    return found if isinstance(found, str) else None


def _key(run: RunView, partition: PartitionView) -> Key:
    """Return what a task is for; a run that goes on with changed settings has another gen_id."""
    return partition.id, f"{run.gen_id} {run.fingerprint_json}"
