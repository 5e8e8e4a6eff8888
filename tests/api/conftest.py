"""A home, a service door of the API over it, and a client that speaks to the application."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from app.api import create_app
from app.clock import SystemClock
from app.controls import find_run, stop
from app.core.spec import RunSpec
from app.core.types import RunId
from app.core.views import RunView
from app.errors import InputError
from app.figures import RunFigures, Speedometer, collect
from app.ledger import runs
from app.settings import Settings
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

    async def submit(
        self, spec: RunSpec, *, accept_changes: bool, who: str, say: Callable[[str], None]
    ) -> RunView:
        self.submitted.append((spec, accept_changes, who))
        if spec.name == "broken":
            raise InputError("partition B9 has no prompt file", hint="look there")
        say("2 records were rejected")
        return runs.get_run(self.home.ledger, self.home.add_run(spec.name))

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
    app = create_app(home.ledger, door, TOKEN, PORT)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url=f"http://127.0.0.1:{PORT}", trust_env=False
    ) as client:
        yield client


@pytest.fixture
def client(anybody: httpx.AsyncClient) -> httpx.AsyncClient:
    anybody.headers["authorization"] = f"Bearer {TOKEN}"
    return anybody
