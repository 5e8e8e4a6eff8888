"""GET routes: figures, lists, and their form (cases prg-02, prg-04)."""

import re
from typing import Any

import httpx

from app.core.types import Counts
from app.figures import from_json, to_json
from tests.api.conftest import Door
from tests.api.home import Home

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d")


async def test_a_run_is_found_by_number_and_by_name(client: httpx.AsyncClient, home: Home) -> None:
    by_name = (await client.get("/api/v1/runs/night")).json()
    by_number = (await client.get(f"/api/v1/runs/{home.run_id}")).json()
    assert by_name["id"] == by_number["id"] == home.run_id
    assert [each["name"] for each in by_name["partitions"]] == ["B1_chat", "B2_code"]


async def test_an_unknown_run_is_told_with_the_choices(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/v1/runs/day")
    error = answer.json()["error"]
    assert answer.status_code == 404
    assert error["code"] == "not_found"
    assert '"day"' in error["message"]
    assert '"night"' in error["hint"]


async def test_prg_02_states_sum_to_the_total_and_percent_is_bounded(
    client: httpx.AsyncClient, home: Home
) -> None:
    home.keep("B1_chat", 4)
    home.fail("B1_chat", 2)
    home.claim("B1_chat", 3)
    run = (await client.get("/api/v1/runs/night")).json()
    for samples in [run["samples"], *(each["samples"] for each in run["partitions"])]:
        assert sum(samples[state] for state in Counts.__slots__) == samples["total"]
    first = run["partitions"][0]
    assert first["samples"] == {
        "pending": 1, "running": 3, "ok": 4, "truncated": 0, "empty": 0, "suspect": 0,
        "failed": 2, "rejected": 0, "kept": 4, "total": 10,
    }  # fmt: skip
    assert first["percent"] == 60
    assert run["percent"] == 30
    assert run["tokens"]["kept_tokens"] == 200


async def test_prg_04_every_time_carries_its_offset(client: httpx.AsyncClient, home: Home) -> None:
    home.keep("B1_chat", 1)
    home.beat("B1_chat", last_token_at=home.clock.now(), in_flight=2)
    paths = ["/runs", "/runs/night", "/runs/night/partitions", "/runs/night/activity", "/servers"]
    found = 0
    for path in paths:
        for key, value in _times((await client.get(f"/api/v1{path}")).json()):
            assert ISO.fullmatch(value), (path, key, value)
            found += 1
    assert found > 8


def _times(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, list):
        return [found for each in value for found in _times(each)]
    if not isinstance(value, dict):
        return []
    own = [
        (key, one)
        for key, one in value.items()
        if (key == "at" or key.endswith(("_at", "since"))) and one is not None
    ]
    return own + [found for each in value.values() for found in _times(each)]


async def test_figures_come_back_from_json_as_they_were(home: Home, door: Door) -> None:
    home.keep("B1_chat", 3)
    home.beat(
        "B1_chat", in_flight=2, notice="waiting for the trial", waiting_since=home.clock.now()
    )
    figures = door.figures(home.run_id)
    sent = to_json(figures)
    assert to_json(from_json(sent)) == sent
    assert from_json(sent).counts == figures.counts
    assert sent["partitions"][0]["remarks"] == ["waiting for the trial"]


async def test_what_is_not_known_is_null_with_its_reason(client: httpx.AsyncClient) -> None:
    run = (await client.get("/api/v1/runs/night")).json()
    assert run["speed_tokens_per_s"] is None
    assert run["time_left_s"] is None
    assert run["time_left_unknown_because"] == "estimating: 0 of 5 answers have ended, in B1_chat"


async def test_activity_tells_who_did_what(client: httpx.AsyncClient) -> None:
    await client.post(
        "/api/v1/runs/night/concurrency", json={"partition": "B1_chat", "requests": 3}
    )
    entries = (await client.get("/api/v1/runs/night/activity?limit=1")).json()["activity"]
    assert len(entries) == 1
    assert entries[0]["who"] == "operator (API)"
    assert entries[0]["event"] == "concurrency"
    assert entries[0]["partition"] == "B1_chat"
    assert entries[0]["detail"] == "B1_chat: share of its class -> 3"


async def test_openapi_describes_the_orders(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/api/v1/openapi.json")).json()["paths"]
    body = paths["/api/v1/runs/{run}/budget"]["post"]["requestBody"]["content"]
    assert body["application/json"]["schema"]["$ref"].endswith("/BudgetOrder")
    assert "/api/v1/runs/{run}/goal" in paths
