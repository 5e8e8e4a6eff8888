"""POST routes: orders reach the ledger, refused ones change nothing."""

import json
from datetime import datetime

import httpx
import pytest
from fastapi import FastAPI

from app.api.error_forms import ErrorForms
from app.core.deadlines import shown
from app.core.spec import to_json
from app.core.states import PartitionState, RunState
from app.errors import NotFoundError
from tests.api.conftest import Door
from tests.api.home import Home

RUN = "/api/v1/runs/night"
JSON = {"content-type": "application/json"}


async def test_pause_and_resume_of_a_partition(
    client: httpx.AsyncClient, home: Home, door: Door
) -> None:
    answer = await client.post(f"{RUN}/pause", json={"partitions": ["B1_chat"]})
    assert answer.status_code == 200
    assert answer.json()["changes"] == [
        {"target": "B1_chat", "what": "state", "old": "active", "new": "paused"}
    ]
    assert home.partition("B1_chat").state is PartitionState.PAUSED
    assert home.partition("B2_code").state is PartitionState.ACTIVE
    assert door.n_pokes == 1
    await client.post(f"{RUN}/resume", json={"partitions": ["B1_chat"]})
    assert home.partition("B1_chat").state is PartitionState.ACTIVE


async def test_an_order_that_is_not_possible_names_the_states(
    client: httpx.AsyncClient, home: Home, door: Door
) -> None:
    await client.post(f"{RUN}/pause", json={"partitions": ["B1_chat"]})
    answer = await client.post(f"{RUN}/drain", json={"partitions": ["B2_code", "B1_chat"]})
    assert answer.status_code == 409
    assert "B1_chat is paused" in answer.json()["error"]["message"]
    assert home.partition("B2_code").state is PartitionState.ACTIVE
    assert door.n_pokes == 1


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("budget", {"partition": "B1_chat", "tokens": 0}),
        ("budget", {"partition": "B1_chat", "tokens": "10M"}),
        ("budget", {"partition": "B1_chat"}),
        ("concurrency", {"partition": "B1_chat", "requests": -1}),
        ("concurrency", {"requests": 4}),
        ("goal", {"partition": "B1_chat", "samples": 1.5}),
        ("pause", {"partition": "B1_chat"}),
        ("retry", {"states": ["ok"]}),
        ("stop", {"now": True}),
        ("deadline", {}),
        ("deadline", {"deadline": 8}),
        ("deadline", {"deadline": "9999-12-31T23:59:59-23:59"}),
        ("budget", {"partition": "\ud800", "tokens": 5}),
        ("pause", {"partitions": ["B1_chat", "\udfff"]}),
        ("retry", {"reason": "\ud800"}),
        ("stop", {"\ud800": True}),
    ],
)
async def test_a_bad_body_is_told_and_changes_nothing(
    client: httpx.AsyncClient, home: Home, verb: str, body: dict[str, object]
) -> None:
    before = home.partition("B1_chat")
    answer = await client.post(f"{RUN}/{verb}", content=json.dumps(body), headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "bad_input"
    assert home.partition("B1_chat") == before
    assert home.run.state is RunState.RUNNING


async def test_an_unknown_partition_is_told_with_the_choices(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"{RUN}/goal", json={"partition": "B9", "samples": 3})
    assert answer.status_code == 404
    assert answer.json()["error"]["hint"] == "It has B1_chat, B2_code"


async def test_limits_are_stored(client: httpx.AsyncClient, home: Home) -> None:
    await client.post(f"{RUN}/concurrency", json={"partition": "B1_chat", "requests": 3})
    await client.post(f"{RUN}/budget", json={"partition": "B1_chat", "tokens": 12_000_000})
    await client.post(f"{RUN}/budget", json={"tokens": 80_000_000})
    await client.post(f"{RUN}/goal", json={"partition": "B1_chat", "samples": 7})
    partition = home.partition("B1_chat")
    assert partition.own_concurrency == 3
    assert partition.token_budget == 12_000_000
    assert partition.goal_samples == 7
    assert home.run.token_budget == 80_000_000


async def test_stop_lets_the_supervisor_say_when_it_has_stopped(
    client: httpx.AsyncClient, home: Home
) -> None:
    answer = await client.post(f"{RUN}/stop", json={})
    assert answer.status_code == 200
    assert home.run.state is RunState.STOPPING


async def test_a_spec_is_submitted_with_what_the_check_said(
    client: httpx.AsyncClient, home: Home, door: Door
) -> None:
    spec = home.spec("second")
    answer = await client.post("/api/v1/runs", json={"spec": json.loads(to_json(spec))})
    assert answer.status_code == 201
    assert answer.json()["name"] == "second"
    assert answer.json()["messages"] == ["2 records were rejected"]
    assert door.submitted == [(spec, False, "operator (API)")]


async def test_a_spec_that_is_refused_says_why(client: httpx.AsyncClient, home: Home) -> None:
    spec = json.loads(to_json(home.spec("broken")))
    answer = await client.post("/api/v1/runs", json={"spec": spec})
    assert answer.status_code == 422
    assert answer.json()["error"] == {
        "code": "bad_input",
        "message": "partition B9 has no prompt file",
        "hint": "look there",
    }


async def test_a_spec_of_another_form_is_refused(client: httpx.AsyncClient, door: Door) -> None:
    answer = await client.post("/api/v1/runs", json={"spec": {"name": "x"}})
    assert answer.status_code == 422
    assert door.submitted == []


async def test_a_deadline_is_set_and_said_back_in_full_with_its_zone(
    client: httpx.AsyncClient, home: Home, door: Door
) -> None:
    answer = await client.post(f"{RUN}/deadline", json={"deadline": "+6h"})
    assert answer.status_code == 200
    assert home.run.deadline_at is not None
    (change,) = answer.json()["changes"]
    assert (change["target"], change["what"], change["old"]) == ("run", "deadline", "none")
    assert change["new"] == shown(home.run.deadline_at.astimezone())
    assert door.n_pokes == 1
    told = (await client.get(RUN)).json()
    assert datetime.fromisoformat(told["deadline_at"]) == home.run.deadline_at

    body = {"partition": "B1_chat", "deadline": "2036-12-01T08:00+01:00"}
    too_far = await client.post(f"{RUN}/deadline", json=body)
    assert too_far.status_code == 422
    assert "more than a year ahead" in too_far.json()["error"]["message"]
    assert home.partition("B1_chat").deadline_at is None

    await client.post(f"{RUN}/deadline", json={"partition": "B1_chat", "deadline": "08:00"})
    assert home.partition("B1_chat").deadline_at is not None
    await client.post(f"{RUN}/deadline", json={"deadline": None})
    assert home.run.deadline_at is None


@pytest.mark.parametrize(
    ("text", "why"),
    [("2024-12-01T08:00+01:00", "has passed: it is"), ("tomorrow", "is not a moment; write")],
)
async def test_a_deadline_that_is_none_is_refused_by_value(
    client: httpx.AsyncClient, home: Home, text: str, why: str
) -> None:
    answer = await client.post(f"{RUN}/deadline", json={"deadline": text})
    assert answer.status_code == 422
    assert f'deadline "{text}" {why}' in answer.json()["error"]["message"]
    assert home.run.deadline_at is None


async def test_an_error_whose_words_no_encoding_can_write_is_answered_all_the_same() -> None:
    app = FastAPI()
    ErrorForms(None, with_cdn=False).attach(app)

    @app.get("/")
    def refuse() -> None:
        raise NotFoundError("there is no \ud800", hint="there is \udfff")

    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
        answer = await client.get("/")
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == r"there is no \ud800"
