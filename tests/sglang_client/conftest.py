"""A simulated server on a real socket, and a client of it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from app.sglang.client import ServerClient
from app.simulator.server import SimulatorThread


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(port=0, instant=True) as running:
        yield running


@pytest.fixture
async def client(simulator: SimulatorThread) -> AsyncIterator[ServerClient]:
    async with ServerClient(simulator.url) as made:
        yield made
