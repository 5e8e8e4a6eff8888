"""A home, and what `longwatch` prints and returns for it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn

from app.cli import main
from app.clock import SystemClock
from app.gate import home_token
from app.ledger.lock import acquire
from tests.api.conftest import Door, app_of
from tests.api.home import Home


@dataclass(frozen=True)
class Told:
    code: int
    out: str
    error: str


Longwatch = Callable[..., Told]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    yield home
    home.ledger.close()


@pytest.fixture
def longwatch(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Longwatch:
    """Return the command, with the test's home as its home."""
    monkeypatch.setenv("LONGWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> Told:
        capfd.readouterr()
        code = main(words)
        out, error = capfd.readouterr()
        assert "Traceback" not in out + error
        return Told(code, out, error)

    return run


@pytest.fixture
def service(home: Home) -> Iterator[Door]:
    """Let the API of this home live in a thread, as a service does."""
    door = Door(home)
    ready, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(home, door, ready, end)))
    thread.start()
    assert ready.wait(30)
    yield door
    end.set()
    thread.join(30)


async def _serve(home: Home, door: Door, ready: threading.Event, end: threading.Event) -> None:
    lock = await acquire(home.folder, SystemClock())
    configuration = uvicorn.Config("none", port=0, log_config=None, lifespan="off")
    sock = configuration.bind_socket()
    port = sock.getsockname()[1]
    configuration.app = app_of(home.ledger, door, home_token(home.folder), port)
    server = uvicorn.Server(configuration)
    task = asyncio.create_task(server._serve(sockets=[sock]))
    lock.announce(f"http://127.0.0.1:{port}")
    ready.set()
    await asyncio.to_thread(end.wait)
    server.should_exit = True
    await task
    lock.release()
