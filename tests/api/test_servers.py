"""GET routes of servers and of speeds: facts and loads, null where nothing is known."""

from dataclasses import asdict

import httpx
import orjson
import pytest

from app.api.schemas_reading import ChartAnswer, ServersAnswer
from app.clock import iso
from app.core.loads import LoadSource, ServerLoad
from app.core.types import ServerFacts
from app.ledger.servers import remember_server
from tests.api.conftest import Door
from tests.api.home import Home

OTHER = "http://127.0.0.1:10"


def know(home: Home, url: str) -> None:
    facts = orjson.dumps(asdict(ServerFacts(model_path="/models/toy", context_tokens=4096)))
    remember_server(home.ledger, url, facts.decode(), home.clock.now())


async def test_a_server_has_its_facts_and_its_load(
    client: httpx.AsyncClient, home: Home, door: Door
) -> None:
    know(home, home.server_url)
    now = home.clock.now()
    door.known_loads[home.server_url] = ServerLoad(
        url=home.server_url, at=now, source=LoadSource.METRICS, running_requests=7, used_ratio=0.25
    )
    answer = await client.get("/api/v1/runs/night/servers")
    ServersAnswer.model_validate_json(answer.content)
    (server,) = answer.json()["servers"]
    assert (server["url"], server["facts"]["model_path"]) == (home.server_url, "/models/toy")
    load = server["load"]
    assert (load["source"], load["trouble"], load["at"]) == ("metrics", "", iso(now))
    assert (load["running_requests"], load["used_ratio"]) == (7, 0.25)
    assert load["waiting_requests"] is None
    assert load["kv_used_tokens"] is None


async def test_a_server_that_nobody_watches_says_so(
    client: httpx.AsyncClient, home: Home, door: Door
) -> None:
    know(home, OTHER)
    answer = await client.get("/api/v1/servers")
    ServersAnswer.model_validate_json(answer.content)
    (server,) = answer.json()["servers"]
    assert server["load"]["source"] == "none"
    assert server["load"]["trouble"] == "no live run uses it, so it is not asked"


async def test_a_server_of_a_run_that_was_never_reached_is_listed(
    client: httpx.AsyncClient, home: Home
) -> None:
    know(home, OTHER)
    answer = await client.get("/api/v1/runs/night/servers")
    ServersAnswer.model_validate_json(answer.content)
    (server,) = answer.json()["servers"]
    assert (server["id"], server["url"], server["facts"]) == (None, home.server_url, {})
    assert server["checked_at"] is None


async def test_a_chart_has_equal_pieces_with_gaps(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/v1/runs/night/chart?span_s=120&buckets=4")
    ChartAnswer.model_validate_json(answer.content)
    chart = answer.json()
    assert chart["bucket_s"] == 30
    assert chart["own_tokens_per_s"] == [None, None, None, 12.5]
    assert chart["server_tokens_per_s"] == [None] * 4
    assert (chart["concurrency_requests"], chart["aways"]) == ([], [])


async def test_a_chart_of_a_partition_that_is_none_is_not_found(client: httpx.AsyncClient) -> None:
    known = await client.get("/api/v1/runs/night/chart?partition=B1_chat")
    unknown = await client.get("/api/v1/runs/night/chart?partition=B9")
    assert (known.status_code, unknown.status_code) == (200, 404)


@pytest.mark.parametrize(
    "query", ["span_s=0", "span_s=-1", "buckets=0", "buckets=1001", "span_s=x"]
)
async def test_a_chart_of_nothing_is_refused(client: httpx.AsyncClient, query: str) -> None:
    assert (await client.get(f"/api/v1/runs/night/chart?{query}")).status_code == 422
