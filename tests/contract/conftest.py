"""Which server the contract is held against: `--server-url`, or else the project's simulator.

Owns the server for the suite and the facts read from it; every test gets a client of its own.
"""

from collections.abc import Iterator

import httpx
import pytest

from app.simulator.server import SimulatorSettings, SimulatorThread
from tests.contract.exchange import Engine, open_client

# Eight times as fast as life, for the time of the suite; nothing else is changed.
SIMULATORS = {
    "simulator": SimulatorSettings(port=0, time_factor=8),
    "simulator-incremental": SimulatorSettings(port=0, time_factor=8, incremental=True),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--server-url", default=None, help="hold the contract against this server")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_url" not in metafunc.fixturenames:
        return
    # The option is unknown to pytest when the run was not started on this folder.
    given = metafunc.config.getoption("server_url", default=None)
    servers = list(SIMULATORS) if given is None else [given]
    metafunc.parametrize("server_url", servers, indirect=True, scope="session")


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    settings = SIMULATORS.get(request.param)
    if settings is None:
        yield str(request.param).rstrip("/")
        return
    with SimulatorThread(settings) as simulator:
        yield simulator.url


@pytest.fixture(scope="session")
def engine(server_url: str) -> Engine:
    with open_client(server_url) as client:
        facts = client.get("/server_info").json()
        model = client.get("/v1/models").json()["data"][0]
    return Engine(
        url=server_url,
        context_tokens=model["max_model_len"],
        incremental=facts["incremental_streaming_output"],
    )


@pytest.fixture
def client(engine: Engine) -> Iterator[httpx.Client]:
    with open_client(engine.url) as opened:
        yield opened


@pytest.fixture
def prompt_ids(client: httpx.Client) -> list[int]:
    # A chat, as in a run: the simulator knows where an answer begins by the template's last mark.
    messages = [{"role": "user", "content": "The quick brown fox asks an engine"}]
    answer = client.post("/tokenize", json={"messages": messages})
    tokens: list[int] = answer.json()["tokens"]
    assert len(tokens) > 3
    return tokens
