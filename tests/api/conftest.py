"""A home, a service door of the API over it, and a client that speaks to the application."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from app.api import create_app
from app.clock import SystemClock
from app.controls import find_run, stop
from app.core.loads import ServerLoad
from app.core.series import Chart
from app.core.spec import RunSpec
from app.core.types import PartitionId, RunId
from app.core.views import RunView
from app.errors import InputError
from app.figures import RunFigures, Speedometer, collect
from app.gate import Keys, allowed_hosts
from app.ledger import runs
from app.ledger.db import Ledger
from app.notifying import Told
from app.settings import Settings
from app.submission import Added
from tests.api.home import Home

TOKEN = "a-token-of-this-test"  # noqa: S105 - opens nothing
PORT = 8400


@dataclass
class Door:
    """The smallest service: figures of the ledger, submissions that only count."""

    home: Home
    n_pokes: int = 0
    submitted: list[tuple[RunSpec, bool, str]] = field(default_factory=list)
    speedometer: Speedometer = field(default_factory=Speedometer)
    settings: Settings = field(default_factory=Settings)
    known_loads: dict[str, ServerLoad] = field(default_factory=dict)
    added: list[tuple[RunId, RunSpec, str]] = field(default_factory=list)
    told: tuple[Told, ...] = ()
    testers: list[str] = field(default_factory=list)
    held_starts: asyncio.Event | None = None

    async def submit(
        self, spec: RunSpec, *, accept_changes: bool, who: str, say: Callable[[str], None]
    ) -> RunView:
        self.submitted.append((spec, accept_changes, who))
        if self.held_starts is not None:
            await self.held_starts.wait()
        if spec.name == "broken":
            raise InputError("partition B9 has no prompt file", hint="look there")
        say("2 records were rejected")
        return runs.get_run(self.home.ledger, self.home.add_run(spec.name))

    async def add(
        self, run_id: RunId, spec: RunSpec, *, who: str, say: Callable[[str], None]
    ) -> Added:
        self.added.append((run_id, spec, who))
        say("in this run already, and left as they are: B1_chat")
        return Added(run=runs.get_run(self.home.ledger, run_id), names=("B9_new",))

    def poke(self) -> None:
        self.n_pokes += 1

    def home_runs(self) -> list[RunView]:
        return runs.list_runs(self.home.ledger)

    def stop_run(self, name: str) -> None:
        """Stop a run to the end, as the supervisor would."""
        now = self.home.clock.now()
        run = find_run(self.home.ledger, name)
        stop(self.home.ledger, run, who="operator", now=now, service_lives=False)

    def figures(self, run_id: RunId) -> RunFigures:
        run = runs.get_run(self.home.ledger, run_id)
        return collect(self.home.ledger, run, self.speedometer, self.settings, SystemClock())

    def chart(
        self,
        run_id: RunId,
        span_s: float | None,
        n_buckets: int,
        partition_id: PartitionId | None = None,  # noqa: ARG002 - as the service's door has it
    ) -> Chart:
        end = max(self.home.clock.now(), runs.get_run(self.home.ledger, run_id).created_at)
        nothing = (None,) * (n_buckets - 1)
        return Chart(
            begin=end - timedelta(seconds=span_s or 60.0),
            end=end,
            own_tokens_per_s=(*nothing, 12.5),
            server_tokens_per_s=(*nothing, None),
        )

    def loads(self) -> dict[str, ServerLoad]:
        return self.known_loads

    def notified(self) -> tuple[str, ...]:
        return tuple(each.target for each in self.told)

    async def notify_test(self, who: str) -> tuple[Told, ...]:
        self.testers.append(who)
        return self.told


def app_of(ledger: Ledger, door: Door, token: str = TOKEN, port: int = PORT) -> FastAPI:
    """Return the API as a service with a token of its own has it."""
    keys = Keys(token, is_open_to_own_user=False, port=port, clock=SystemClock())
    return create_app(ledger, door, keys, allowed_hosts("127.0.0.1", port))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    yield home
    home.ledger.close()


@pytest.fixture
def door(home: Home) -> Door:
    return Door(home)


@pytest.fixture
async def anybody(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client without a token."""
    app = app_of(home.ledger, door)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url=f"http://127.0.0.1:{PORT}", trust_env=False
    ) as client:
        yield client


@pytest.fixture
def client(anybody: httpx.AsyncClient) -> httpx.AsyncClient:
    anybody.headers["authorization"] = f"Bearer {TOKEN}"
    return anybody
