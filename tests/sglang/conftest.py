"""Real servers for tests marked `real_sglang`, from the environment that script/test-sglang makes.

Owns the life of every server a test asks for. A test here is never skipped: without
LONGWATCH_SGLANG_HOME it fails and says what to run, and a skip under that script is a failure.
"""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.sglang.real_server import RealServer

HOME_VARIABLE = "LONGWATCH_SGLANG_HOME"
TEST_BOUND_S = 900  # two starts on a machine that is many times overloaded

MakeServer = Callable[..., RealServer]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Every test of this folder needs the real server, so that none can forget the mark.
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("real_sglang")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TEST_BOUND_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and HOME_VARIABLE in os.environ:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which script/test-sglang does not allow"
    return report


@pytest.fixture(scope="session")
def sglang_home() -> Path:
    """The folder of the installed server: `venv`, `tiny-llama` and `tiny-llama-b` are in it."""
    value = os.environ.get(HOME_VARIABLE)
    if not value:
        pytest.fail(f"{HOME_VARIABLE} is not set: run script/test-sglang", pytrace=False)
    home = Path(value)
    if not (home / "ready").exists():
        pytest.fail(f"{home} holds no finished environment: run script/test-sglang", pytrace=False)
    return home


@pytest.fixture(scope="session")
def make_real_server(
    sglang_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeServer]:
    """Give servers of their own to tests: `make_real_server("--flag", ...)` returns a ready one."""
    made: list[RealServer] = []

    def make(*flags: str, port: int | None = None) -> RealServer:
        server = RealServer(sglang_home, tmp_path_factory.mktemp("server") / "log", port=port)
        made.append(server)
        server.start(*flags)
        server.wait_ready()
        return server

    yield make
    for server in made:
        server.close()


@pytest.fixture(scope="session")
def real_server(make_real_server: MakeServer) -> RealServer:
    """One server with the recipe's own flags, shared by the tests which leave it as it was."""
    return make_real_server()


@pytest.fixture
def doomed_server(make_real_server: MakeServer) -> Iterator[RealServer]:
    """A server of its own for a test that kills it."""
    server = make_real_server()
    yield server
    server.close()
