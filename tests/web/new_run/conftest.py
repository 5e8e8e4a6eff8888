"""One home for the tests of new runs, a desk of prompts for each, a browser that is logged in."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from app.simulator.server import SimulatorThread
from tests.api.home import Home
from tests.web.new_run.desk import PromptDesk, chat
from tests.web.test_actions import somebody


@pytest.fixture(scope="session")
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(port=0, instant=True) as server:
        yield server


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Return one home for all: no test here but one makes a run in it, of a name of its own."""
    home = Home(tmp_path_factory.mktemp("shared") / "home")
    yield home
    home.ledger.close()


@pytest.fixture
def desk(shared_home: Home, tmp_path: Path, simulator: SimulatorThread) -> PromptDesk:
    desk = PromptDesk(shared_home, tmp_path, simulator.url)
    desk.write("night/B1_chat/prompts.jsonl", [chat(f"a{n}", "word " * n) for n in range(1, 6)])
    return desk


@pytest.fixture
async def browser(desk: PromptDesk) -> AsyncIterator[httpx.AsyncClient]:
    async with somebody(desk.home, desk.door) as client:
        yield client
