"""A home with a run, a poller over it, and a clock that can be put forward."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson

from app.clock import SystemClock
from app.core.loads import ServerLoad
from app.core.types import RunId, ServerFacts
from app.events import Event
from app.ledger import activity
from app.ledger.servers import remember_server, servers
from app.poller import Poller
from app.poller.identity import facts_to_json
from app.settings import Settings
from tests.api.home import Home


class ForwardClock(SystemClock):
    """The machine's time, put forward by `ahead_s`."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead_s)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


@dataclass
class Desk:
    home: Home
    poll_s: float = 2.0
    api_key: str | None = None
    events: list[Event] = field(default_factory=list)
    clock: ForwardClock = field(default_factory=ForwardClock)

    def __post_init__(self) -> None:
        self.poller = self.make_poller()

    def make_poller(self) -> Poller:
        settings = Settings(
            home=self.home.folder,
            poll_s=self.poll_s,
            api_key=self.api_key,
        )
        return Poller(self.home.ledger, settings, self.clock, self.events.append)

    @property
    def load(self) -> ServerLoad:
        return self.poller.loads()[self.home.server_url]

    async def look(self, *, ahead_s: float = 0.0) -> ServerLoad:
        """Put the clock forward, look once, and return what is known of the run's server."""
        self.clock.ahead_s += ahead_s
        await self.poller.look()
        return self.load

    def entries(self, run_id: RunId | None = None) -> list[str]:
        """Return what was noted of servers, oldest first, as "event: detail"."""
        found = activity.latest(self.home.ledger, run_id or self.home.run_id)
        return [
            f"{one.event} | {one.detail}" for one in reversed(found) if one.event[:6] == "server"
        ]

    def events_noted(self) -> list[str]:
        return [entry.partition(" | ")[0] for entry in self.entries()]

    def remember(self, **facts: Any) -> None:
        """Let the ledger hold facts of the run's server, as a submission leaves them."""
        content = facts_to_json(ServerFacts(**facts))
        remember_server(self.home.ledger, self.home.server_url, content, self.clock.now())

    def stored_facts(self) -> Mapping[str, Any]:
        (view,) = servers(self.home.ledger)
        facts: Mapping[str, Any] = orjson.loads(view.facts_json)
        return facts

    def last_good_at(self) -> datetime | None:
        (view,) = servers(self.home.ledger)
        return view.last_good_at
