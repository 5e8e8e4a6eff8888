"""Simulated servers, homes whose run names them, and pollers that are closed in the end."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.simulator.server import SimulatorThread
from tests.api.home import Home
from tests.poller.desk import Desk

StartServer = Callable[..., SimulatorThread]
MakeDesk = Callable[..., Desk]


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    started: list[SimulatorThread] = []

    def start(**changes: Any) -> SimulatorThread:
        simulator = SimulatorThread(port=0, **{"time_factor": 10.0, **changes}).start()
        started.append(simulator)
        return simulator

    yield start
    for simulator in started:
        simulator.stop()


@pytest.fixture
async def make_desk(tmp_path: Path) -> AsyncIterator[MakeDesk]:
    made: list[Desk] = []

    def make(server_url: str, **changes: Any) -> Desk:
        folder = tmp_path / f"home-{len(made)}"
        made.append(Desk(Home(folder, server_url=server_url), **changes))
        return made[-1]

    yield make
    for desk in made:
        await desk.poller.close()
        desk.home.ledger.close()
