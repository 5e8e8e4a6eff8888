"""Servers that end with the test that started them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.simulator.server import SimulatorThread
from tests.simulator.talk import Talk


@pytest.fixture
def start() -> Iterator[Callable[..., Talk]]:
    """Return a function that starts a simulator with given settings and a client for it."""
    talks: list[Talk] = []

    def begin(**changes: Any) -> Talk:
        talk = Talk(SimulatorThread(port=0, **changes).start())
        talks.append(talk)
        return talk

    yield begin
    for talk in talks:
        talk.http.close()
        talk.simulator.stop()
