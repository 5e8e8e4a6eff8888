"""A simulated server, and a run of one partition beside an earlier script's folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.simulator.server import SimulatorThread
from tests.adopting.earlier import Earlier


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(time_factor=50) as server:
        yield server


@pytest.fixture
def earlier(tmp_path: Path, simulator: SimulatorThread) -> Earlier:
    return Earlier(tmp_path, simulator)
