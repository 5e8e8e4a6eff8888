"""The servers of a run as one that tokenizes: whichever answers, waited for while none does.

Owns the waiting: one look at a time with growing gaps, however many prompts wait. Invariant: a
server that is away costs no prompt anything but time.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from app.clock import Clock
from app.core.retry import PROBE_CAP_S, PROBE_FIRST_S
from app.core.types import ServerFacts
from app.errors import ServerAwayError, ServerError
from app.events import Observer, ServerBack, ServerLost
from app.prompt_tokens import Body
from app.sglang.client import ServerClient


class TokenizeServers:
    """Shared by the partitions of a run. The clients are open, and closed by their owner."""

    def __init__(self, clients: Sequence[ServerClient], clock: Clock, observer: Observer) -> None:
        self._clients = list(clients)
        self._clock = clock
        self._observer = observer
        self._turn = 0
        self._looking = asyncio.Lock()
        self._n_waits = 0
        self._n_looks = 0
        self._away_since: datetime | None = None

    async def tokenize(self, body: Body) -> list[int]:
        """Return the ids; ServerError with the server's words if it refuses this input."""
        while True:
            n_waits = self._n_waits
            self._turn += 1
            for number in range(len(self._clients)):
                client = self._clients[(self._turn + number) % len(self._clients)]
                try:
                    ids = await client.tokenize(body)
                except ServerAwayError as error:
                    away = error
                    continue
                except ServerError:
                    self._answered(client)
                    raise
                self._answered(client)
                return ids
            await self._wait(n_waits, away)

    async def detokenize(self, ids: list[int]) -> str:
        """Return the text of ids, special ones left out; waits until a server tells it."""
        while True:
            n_waits = self._n_waits
            self._turn += 1
            for number in range(len(self._clients)):
                client = self._clients[(self._turn + number) % len(self._clients)]
                text = await client.detokenize(ids)
                if text is not None:
                    self._answered(client)
                    return text
            await self._wait(n_waits, ServerAwayError("no server answers /detokenize"))

    async def facts(self) -> list[ServerFacts]:
        """Return what those servers say of themselves that answer now; at least one."""
        while True:
            n_waits = self._n_waits
            known: list[ServerFacts] = []
            for client in self._clients:
                try:
                    known.append(await client.facts())
                except ServerError as error:
                    refusal = error
                    continue
                self._answered(client)
            if known:
                return known
            await self._wait(n_waits, refusal)

    def _answered(self, client: ServerClient) -> None:
        self._n_looks = 0
        since, self._away_since = self._away_since, None
        if since is not None:
            away_s = (self._clock.now() - since).total_seconds()
            self._observer(ServerBack(url=client.url, away_s=away_s))

    async def _wait(self, n_waits: int, error: ServerError) -> None:
        """Wait until a server answers anything; all who wait share one look."""
        async with self._looking:
            if self._n_waits != n_waits:
                return  # somebody has waited since this request was sent
            if self._away_since is None:
                self._away_since = self._clock.now()
                urls = ", ".join(client.url for client in self._clients)
                self._observer(ServerLost(url=urls, reason=error.message))
            is_back = False
            while not is_back:
                await self._clock.sleep(min(PROBE_CAP_S, PROBE_FIRST_S * 2**self._n_looks))
                self._n_looks = min(self._n_looks + 1, 16)
                looks = [await client.is_alive() for client in self._clients]
                is_back = any(looks)
            self._n_waits += 1
