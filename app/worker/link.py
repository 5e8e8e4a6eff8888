"""A worker's line to one server: may it be used now, and how much.

States: *away* (it does not answer; probed with growing gaps), *trial* (one request is sent and
judged at its first ids before the rest, unless it is silent for long), *open*, *doubtful* (a
connection was cut; a quick look tells whether the server died). Waiting costs no sample an
attempt.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from random import Random

from app.clock import Clock
from app.core.conditions import SERVER_CHANGED
from app.core.fingerprint import differences, identity_of
from app.core.retry import Shed, probe_gap_s
from app.core.types import ServerFacts
from app.errors import ServerAwayError, ServerError
from app.events import Observer, ServerBack, ServerLost
from app.sglang.client import ServerClient

_LOOKS = 3
_LOOK_GAP_S = 0.3
_HEALTHY = 200
_FAILED_TRIALS = 3


class LinkState(StrEnum):
    AWAY = "away"
    TRIAL = "trial"
    OPEN = "open"
    DOUBTFUL = "doubtful"


class ServerLink:
    """One server of a worker. `changed` is called whenever more or less may be sent."""

    def __init__(
        self,
        client: ServerClient,
        clock: Clock,
        random: Random,
        observer: Observer,
        identity: Mapping[str, object] | None,
        trial_patience_s: float,
    ) -> None:
        self.client = client
        self.url = client.url
        self.state = LinkState.AWAY
        self.away_since: datetime | None = clock.now()
        self.facts = ServerFacts()
        self.limit = 0
        self.in_flight = 0
        self.identity = identity
        self.refusal = ""
        self._shed = Shed()
        self.is_untried = True
        self._trial_patience_s = trial_patience_s
        self._n_trials = 0
        self._n_failed_trials = 0
        self._tried_at_s = 0.0
        self._clock = clock
        self._random = random
        self._observer = observer
        self.changed: Callable[[], None] = lambda: None
        self._attention = asyncio.Event()
        self._attention.set()
        self._verdict: asyncio.Future[bool] | None = None

    @property
    def room(self) -> int:
        """How many more requests may be sent now."""
        if self.state is LinkState.TRIAL and not self._trial_is_silent:
            return int(self.limit > 0 and not self._n_trials)
        if self.state not in (LinkState.TRIAL, LinkState.OPEN):
            return 0
        return max(0, self.effective_limit - self.in_flight)

    @property
    def _trial_is_silent(self) -> bool:
        """One slow answer, or one that never comes, holds back nothing for ever (net-05)."""
        waited_s = self._clock.monotonic() - self._tried_at_s
        return self._n_trials > 0 and waited_s >= self._trial_patience_s

    def took(self) -> None:
        """Note that a request goes out on this link."""
        self.in_flight += 1
        if self.is_on_trial:
            if not self._n_trials:
                self._tried_at_s = self._clock.monotonic()
            self._n_trials += 1

    def gave_back(self, *, was_trial: bool) -> None:
        """Note that a request has ended."""
        self.in_flight -= 1
        if was_trial:  # maybe of an earlier trial, hence no less than 0
            self._n_trials = max(0, self._n_trials - 1)

    @property
    def is_on_trial(self) -> bool:
        return self.state is LinkState.TRIAL

    @property
    def effective_limit(self) -> int:
        return self._shed.allowed(self.limit, self._clock.monotonic())

    @property
    def notice(self) -> str:
        """Say that the server's queue is full, while less than the share is used for it."""
        if self.effective_limit >= self.limit:
            return ""
        return f"server queue full: {self.effective_limit} of {self.limit} requests are sent"

    def busy(self) -> None:
        """Use less of the share for a while: the server's queue is full."""
        self._shed = self._shed.on_busy(self._clock.monotonic())

    def failed_trial(self) -> None:
        """Note that a trial ended in an error of its own. After some, the rest is sent, untried.

        A server that answers errors speaks the protocol; one row that it cannot serve, or three,
        must not hold back all others.
        """
        self._n_failed_trials += 1
        if self.is_on_trial and self._n_failed_trials >= _FAILED_TRIALS:
            self.state = LinkState.OPEN
            self.changed()

    def passed_trial(self) -> None:
        self.is_untried = False
        if self.state is LinkState.TRIAL:
            self.state = LinkState.OPEN
            self.changed()

    def refused(self, reason: str) -> None:
        """Note that no connection was made: the server is away."""
        if self.state is LinkState.AWAY:
            return
        self.state = LinkState.AWAY
        self.away_since = self._clock.now()
        self._observer(ServerLost(url=self.url, reason=reason))
        self._attention.set()

    async def is_alive_after_cut(self) -> bool:
        """Tell whether the server lives, after one of its connections was cut.

        All calls that were cut together wait for one look. Nothing is sent meanwhile.
        """
        if self.state is LinkState.AWAY:
            return False
        if self._verdict is None:
            self.state = LinkState.DOUBTFUL
            self._verdict = asyncio.get_running_loop().create_future()
            self._attention.set()
        return await asyncio.shield(self._verdict)

    async def watch(self) -> None:
        """Probe while away, look while doubtful; runs as long as the worker does."""
        while True:
            await self._attention.wait()
            self._attention.clear()
            if self.state is LinkState.AWAY:
                await self._come_back()
            elif self.state is LinkState.DOUBTFUL:
                await self._look()

    async def _come_back(self) -> None:
        n_probes = 0
        while not await self._connected():
            if self.refusal:
                return
            await self._clock.sleep(probe_gap_s(n_probes, self._random))
            n_probes += 1
        away_since, self.away_since = self.away_since, None
        self.state = LinkState.TRIAL
        self.is_untried = True
        self._n_trials = self._n_failed_trials = 0
        if away_since is not None:
            away_s = (self._clock.now() - away_since).total_seconds()
            self._observer(ServerBack(url=self.url, away_s=away_s))
        self.changed()

    async def _connected(self) -> bool:
        """Return whether the server is healthy and still the one that the run began with."""
        try:
            if await self.client.health() != _HEALTHY:
                return False
            await self._read_facts()
        except ServerAwayError:
            return False
        return not self.refusal

    async def _read_facts(self) -> None:
        """Read anew what the server says of itself; `refusal` is why it serves this run no more."""
        try:
            self.facts = await self.client.facts()
        except ServerAwayError:
            raise
        except ServerError as error:  # it lives and wants a key: waiting does not help
            self.refusal = str(error)
            return
        found = identity_of(self.facts)
        if self.identity is not None and found != self.identity:
            changes = ", ".join(differences(self.identity, found))
            self.refusal = f"{SERVER_CHANGED}{self.url} {changes}"
            return
        self.identity = found

    async def _look(self) -> None:
        """Look a few times whether the server still answers, and tell those who wait."""
        alive = True
        for look in range(_LOOKS):
            if look:
                await self._clock.sleep(_LOOK_GAP_S)
            alive = await self.client.is_alive()
            if not alive:
                break
        if alive:
            with suppress(ServerAwayError):
                await self._read_facts()  # it may have started anew meanwhile, as another
            alive = not self.refusal
        verdict, self._verdict = self._verdict, None
        if alive:
            self.state = LinkState.TRIAL if self.is_untried else LinkState.OPEN
            self.changed()
        else:
            self.refused(self.refusal or "connections were cut and it no longer answers")
        if verdict is not None and not verdict.done():
            verdict.set_result(alive)
