"""`/metrics`: names, units and labels, read back by the library's own parser."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from app.api.exposition import exposition_routes
from app.core.conditions import ConditionKind
from app.core.loads import LoadSource, ServerLoad
from app.core.spread import Elsewhere
from app.core.states import SampleState
from app.ledger.measures import add
from tests.api.conftest import Door
from tests.api.home import Home

Labels = tuple[tuple[str, str], ...]
CHAT = (("partition", "B1_chat"), ("run", "night"))


@pytest.fixture
async def scraper(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(exposition_routes(home.ledger, door))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


async def scrape(client: httpx.AsyncClient) -> dict[tuple[str, Labels], float]:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def of(labels: Labels, **more: str) -> Labels:
    return tuple(sorted((*labels, *more.items())))


async def test_the_figures_of_a_run_are_exposed(
    scraper: httpx.AsyncClient, home: Home, door: Door
) -> None:
    home.keep("B1_chat", 4, tokens=50)
    home.fail("B1_chat", 1)
    home.beat("B1_chat", in_flight=3, reserved_tokens=70)
    figures = door.figures(home.run_id).partitions[0]
    found = await scrape(scraper)
    for state in SampleState:
        shown = found["longwatch_samples", of(CHAT, state=state.value)]
        assert shown == getattr(figures.counts, state)
    assert found["longwatch_received_tokens_total", CHAT] == 200
    assert found["longwatch_wasted_tokens_total", CHAT] == 0
    assert found["longwatch_tokens", of(CHAT, kind="kept")] == 200
    assert found["longwatch_tokens", of(CHAT, kind="reserved")] == 70
    assert found["longwatch_in_flight_requests", CHAT] == 3
    assert found["longwatch_run_state", (("run", "night"), ("state", "running"))] == 1
    assert found["longwatch_run_progress_ratio", (("run", "night"),)] == 0.25
    for kind in ConditionKind:
        assert found["longwatch_condition_active", (("kind", kind), ("run", "night"))] in (0, 1)
    assert [name for name, _ in found if name == "longwatch_build_info"]


async def test_what_was_adopted_is_counted_beside_what_was_received(
    scraper: httpx.AsyncClient, home: Home
) -> None:
    assert not [name for name, _ in await scrape(scraper) if "adopted" in name]
    values = [(Elsewhere.ADOPTED, 70), (Elsewhere.ADOPTED, 30)]
    with home.ledger.write() as connection:
        add(connection, home.partition("B1_chat").id, values, 1)
    found = await scrape(scraper)
    assert found["longwatch_adopted_tokens_total", CHAT] == 100


async def test_what_is_not_known_is_absent(
    scraper: httpx.AsyncClient, home: Home, door: Door
) -> None:
    door.known_loads["http://a"] = ServerLoad(url="http://a", trouble="not asked yet")
    names = {name for name, _ in await scrape(scraper)}
    assert "longwatch_samples" in names
    for absent in (
        "longwatch_run_time_left_seconds",
        "longwatch_time_left_seconds",
        "longwatch_speed_tokens_per_second",
        "longwatch_token_budget_tokens",
        "longwatch_server_up",
        "longwatch_server_running_requests",
        "longwatch_server_kv_tokens",
    ):
        assert absent not in names


async def test_the_times_of_answers_are_histograms(scraper: httpx.AsyncClient, home: Home) -> None:
    home.keep("B1_chat", 3, first_token_ms=127)
    home.keep("B1_chat", 1, first_token_ms=128)
    home.keep("B2_code", 1)
    found = await scrape(scraper)
    name = "longwatch_first_token_seconds"
    assert found[f"{name}_count", CHAT] == 4
    assert found[f"{name}_sum", CHAT] == pytest.approx(0.509)
    shown = {labels: n for (each, labels), n in found.items() if each == f"{name}_bucket"}
    assert shown[of(CHAT, le="0.064")] == 0
    assert shown[of(CHAT, le="0.128")] == 3
    assert shown[of(CHAT, le="0.256")] == 4
    assert shown[of(CHAT, le="+Inf")] == 4
    assert found["longwatch_latency_seconds_sum", CHAT] == pytest.approx(5.09)
    assert not [labels for labels in shown if ("partition", "B2_code") in labels]  # not 0


async def test_servers_are_exposed_and_names_escaped(
    scraper: httpx.AsyncClient, home: Home, door: Door
) -> None:
    odd = 'night "two"\\\nthree'
    home.add_run(odd)
    now = home.clock.now()
    door.known_loads["http://a"] = ServerLoad(
        url="http://a",
        at=now,
        source=LoadSource.METRICS,
        running_requests=5,
        waiting_requests=0,
        kv_used_tokens=900,
    )
    door.known_loads["http://b"] = ServerLoad(
        url="http://b", at=now, away_since=now, source=LoadSource.METRICS, running_requests=3
    )
    found = await scrape(scraper)
    a, b = (("server", "http://a"),), (("server", "http://b"),)
    assert found["longwatch_server_up", a] == 1
    assert found["longwatch_server_up", b] == 0
    assert found["longwatch_server_running_requests", a] == 5
    assert found["longwatch_server_waiting_requests", a] == 0
    assert (
        "longwatch_server_running_requests",
        b,
    ) not in found  # an old figure of one that is gone
    assert found["longwatch_server_kv_tokens", of(a, kind="used")] == 900
    assert ("longwatch_server_kv_tokens", of(a, kind="free")) not in found
    assert (("longwatch_run_state", (("run", odd), ("state", "running")))) in found


async def test_a_run_that_has_ended_is_no_longer_exposed(
    scraper: httpx.AsyncClient, home: Home, door: Door
) -> None:
    home.add_run("second")
    door.stop_run("night")
    runs = {dict(labels).get("run") for _, labels in await scrape(scraper)}
    assert runs == {None, "second"}
