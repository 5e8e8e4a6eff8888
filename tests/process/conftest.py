"""The fake server and the run of a failure case; both end with the test, whatever it did."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.simulator.server import SimulatorThread
from tests.notifying.receiver import Receiver, receiving
from tests.process.case_run import CaseRun


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(port=0) as server:
        yield server


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def run(tmp_path: Path, simulator: SimulatorThread) -> Iterator[CaseRun]:
    run = CaseRun(tmp_path, simulator.url)
    yield run
    run.close()
