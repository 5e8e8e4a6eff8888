"""POST of partitions, and what a spec that came as JSON is refused for."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.core.spec import PartitionSpec, to_json
from app.core.types import RunId
from tests.api.conftest import Door
from tests.api.home import Home

PATH = "/api/v1/runs/night/partitions"


async def test_a_spec_is_handed_on_and_what_came_of_it_answered(
    client: httpx.AsyncClient, home: Home, door: Door
) -> None:
    spec = replace(home.spec("more"), partitions={"B9_new": PartitionSpec(class_name="long")})
    answer = await client.post(PATH, json={"spec": json.loads(to_json(spec))})
    assert answer.status_code == 200
    assert answer.json() == {
        "run": 1,
        "name": "night",
        "state": "running",
        "added": ["B9_new"],
        "messages": ["in this run already, and left as they are: B1_chat"],
    }
    assert door.added == [(RunId(1), spec, "operator (API)")]


async def test_an_unknown_run_is_told(client: httpx.AsyncClient, home: Home, door: Door) -> None:
    body = {"spec": json.loads(to_json(home.spec("more")))}
    answer = await client.post("/api/v1/runs/day/partitions", json=body)
    assert answer.status_code == 404
    assert door.added == []


def spoilt(home: Home, **changes: Any) -> dict[str, Any]:
    return {**json.loads(to_json(home.spec("more"))), **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partitions": {"../../evil": {"class_name": "short"}}}, "partition name"),
        ({"partitions": {"B1": {"class_name": "none"}}}, "the class none"),
        ({"partitions": {"B1": {"class_name": "short", "max_samples": 0}}}, "max_samples of B1"),
        ({"partitions": {"B1": {"class_name": "short", "colour": 1}}}, "form of this version"),
        ({"classes": {"short": {"concurrency": "8", "max_new_tokens": 9}}}, "concurrency"),
        ({"classes": {"short": {"concurrency": 0, "max_new_tokens": 9}}}, "concurrency of class"),
        ({"server_urls": []}, "server_urls is empty"),
        ({"samples_per_prompt": -1}, "samples_per_prompt is -1"),
        ({"sampling": {"temperature": "hot"}}, "temperature"),
        ({"order": "random"}, "form of this version"),
        ({"name": " "}, "has no name"),
        ({"stop_grace_s": None}, "stop_grace_s"),
    ],
)
async def test_a_spec_that_no_file_could_hold_is_refused(
    client: httpx.AsyncClient, home: Home, door: Door, changes: dict[str, Any], message: str
) -> None:
    body = {"spec": spoilt(home, **changes)}
    for path in (PATH, "/api/v1/runs"):
        answer = await client.post(path, json=body)
        assert answer.status_code == 422, answer.text
        assert message in answer.json()["error"]["message"]
    assert (door.added, door.submitted) == ([], [])
