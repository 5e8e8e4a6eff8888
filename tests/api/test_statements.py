"""No GET route walks over the samples, whatever it is asked: its statements are explained."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.core.states import SampleState
from app.ledger.browsing import sample_page
from tests.api.conftest import PORT, TOKEN, Door, app_of
from tests.api.home import Home
from tests.api.paths import get_paths
from tests.ledger.plans import recorded, scans

N_SAMPLES = 3_000


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Home]:
    """Two partitions of 3,000 samples each, some in every state that people look for."""
    home = Home(tmp_path / "home", n_samples=N_SAMPLES)
    home.keep("B1_chat", 1_200)
    home.fail("B1_chat", 300)
    home.claim("B1_chat", 50)
    home.keep("B2_code", 2_500)
    yield home
    home.ledger.close()


async def test_no_get_route_walks_over_the_samples(large: Home) -> None:
    door = Door(large)
    app = app_of(large.ledger, door)
    sample = sample_page(large.ledger, large.partition("B1_chat"), None, 5, 1).samples[0].id
    paths = get_paths(app.openapi(), run="night", sample=sample, partition="B1_chat")
    paths += [
        f"/api/v1/runs/night/samples?partition={name}&state={state}&after={after}"
        for name in large.names
        for state in SampleState
        for after in (-1, 1_000)
    ]
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(
        transport=transport, base_url=f"http://127.0.0.1:{PORT}", headers=headers, trust_env=False
    ) as client:
        with recorded(large.ledger) as asked:
            for path in paths:
                answer = await client.get(path)
                assert answer.status_code == 200, (path, answer.text)
    assert len(asked) > len(paths)
    assert scans(large.ledger, asked) == {}


def test_the_check_sees_a_walk_over_the_samples(large: Home) -> None:
    with recorded(large.ledger) as asked, large.ledger.read() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM sample WHERE key = 'a1'")
        connection.exec_driver_sql("SELECT max(x.key) FROM sample x WHERE x.finish_reason = 'stop'")
        connection.exec_driver_sql("SELECT key FROM sample WHERE id = 1")
    assert len(scans(large.ledger, asked)) == 2
