"""`/runs/{run}/partitions/{partition}/measures`: lengths and times of answers that ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from app.clock import iso
from app.core.states import SampleState
from tests.api.home import Home

PATH = "/api/v1/runs/night/partitions/B1_chat/measures"
NONE: dict[str, object] = {
    "n": 0,
    "mean": None,
    "p10": None,
    "p50": None,
    "p90": None,
    "p95": None,
    "p99": None,
    "buckets": [],
}


async def told(client: httpx.AsyncClient, query: str = "") -> dict[str, Any]:
    answer = await client.get(PATH + query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_lengths_and_times_are_told_with_the_share_that_was_cut(
    client: httpx.AsyncClient, home: Home
) -> None:
    home.keep("B1_chat", 3, tokens=50, first_token_ms=120)
    home.keep("B1_chat", 1, tokens=100, state=SampleState.TRUNCATED)
    home.keep("B2_code", 2, tokens=7)

    found = await told(client)

    assert (found["partition"], found["since"], found["cut_ratio"]) == ("B1_chat", None, 0.25)
    output = found["output_tokens"]
    assert (output["n"], output["mean"]) == (4, 62.5)
    assert output["buckets"] == [[53, 3], [107, 1]]
    assert 46 <= output["p50"] <= 53
    assert output["p99"] == 100
    assert found["output_cut_tokens"]["buckets"] == [[107, 1]]
    assert found["prompt_tokens"]["mean"] == 4
    assert (found["first_token_ms"]["n"], found["first_token_ms"]["mean"]) == (3, 120)
    assert (found["latency_ms"]["n"], found["latency_ms"]["mean"]) == (3, 1200)


async def test_what_was_not_measured_is_null_and_what_is_not_there_is_named(
    client: httpx.AsyncClient,
) -> None:
    found = await told(client)
    answer = await client.get("/api/v1/runs/night/partitions/B9/measures")

    assert found["cut_ratio"] is None
    for kind in ("output_tokens", "output_cut_tokens", "prompt_tokens", "latency_ms"):
        assert found[kind] == NONE
    assert found["first_token_ms"] == NONE
    assert answer.status_code == 404
    assert "no partition B9" in answer.json()["error"]["message"]
    assert "B1_chat, B2_code" in answer.json()["error"]["hint"]


async def test_a_moment_chooses_whole_hours(client: httpx.AsyncClient, home: Home) -> None:
    home.keep("B1_chat", 3, tokens=50)
    now = datetime.now(UTC)
    before, after = iso(now - timedelta(hours=2)), iso(now + timedelta(hours=2))

    everything = await told(client, f"?since={before.replace('+', '%2B')}")
    nothing = await told(client, f"?since={after}")  # with a plus, as people paste it
    since_ever = await told(client, "?since=0001-01-01T00:00:00%2B14:00")

    assert (everything["output_tokens"]["n"], nothing["output_tokens"]["n"]) == (3, 0)
    assert since_ever["output_tokens"]["n"] == 3
    begin = datetime.fromisoformat(everything["since"])
    assert (begin.minute, begin.second, begin.microsecond) == (0, 0, 0)
    assert timedelta(hours=2) <= now - begin < timedelta(hours=3)


async def test_what_is_no_moment_is_refused_with_its_name_and_value(
    client: httpx.AsyncClient,
) -> None:
    for word in ("yesterday", "2026-12-01T08:00:00", "1764576000", "2026-13-01T08:00:00Z", ""):
        answer = await client.get(f"{PATH}?since={word}")

        assert answer.status_code == 422
        error = answer.json()["error"]
        assert f"since = {word!r}" in error["message"]
        assert "2026-12-01T08:00:00Z" in error["hint"]
