"""A simulator and a desk that end with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.simulator.server import SimulatorThread
from tests.intake.desk import Desk


@pytest.fixture
def make_desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Return a function that sets up a desk with a simulator of given settings."""
    desks: list[Desk] = []

    def make(**settings: Any) -> Desk:
        simulator = SimulatorThread(port=0, instant=True, **settings).start()
        desks.append(Desk(tmp_path, simulator))
        return desks[-1]

    yield make
    for desk in desks:
        desk.ledger.close()
        desk.simulator.stop()


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    return make_desk()
