"""The fake server of a failure case: one per test, on a free port."""

from collections.abc import Iterator

import pytest

from app.simulator.server import SimulatorThread


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(port=0) as running:
        yield running
