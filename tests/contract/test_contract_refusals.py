"""The contract of refusals: which status and error shape, and that the server lives on."""

from collections.abc import Iterator

import httpx
import pytest

from tests.contract.exchange import (
    Engine,
    Json,
    generate,
    live_stream,
    request_body,
    running_requests,
    wait_until,
)


@pytest.fixture(autouse=True)
def _still_serving(client: httpx.Client, prompt_ids: list[int]) -> Iterator[None]:
    yield
    assert len(generate(client, prompt_ids, max_new_tokens=2)["output_ids"]) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_an_unknown_sampling_field_is_400_with_the_error_as_a_string(
    client: httpx.Client, prompt_ids: list[int], stream: bool
) -> None:
    body = request_body(prompt_ids, stream=stream, max_new_tokens=2, no_such_field=1)

    response = client.post("/generate", json=body)

    assert response.status_code == 400
    error = response.json()["error"]
    assert isinstance(error, str)
    assert "no_such_field" in error


@pytest.mark.parametrize("field", [{"top_p": 1.5}, {"temperature": -1}, {"max_new_tokens": -1}])
def test_a_sampling_value_out_of_range_is_400_with_a_message(
    client: httpx.Client, prompt_ids: list[int], field: Json
) -> None:
    response = client.post("/generate", json=request_body(prompt_ids, **field))

    assert response.status_code == 400
    assert next(iter(field)) in response.json()["error"]["message"]


def test_a_prompt_too_long_is_400_and_says_both_lengths(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    too_long = prompt_ids[:1] * (engine.context_tokens + 8)

    response = client.post("/generate", json=request_body(too_long, max_new_tokens=1))

    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert str(len(too_long)) in message
    assert str(engine.context_tokens) in message


def test_prompt_and_answer_together_over_the_context_are_400(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    body = request_body(prompt_ids, max_new_tokens=engine.context_tokens)

    response = client.post("/generate", json=body)

    assert response.status_code == 400
    assert str(engine.context_tokens) in response.json()["error"]["message"]


def test_no_ids_at_all_is_400(client: httpx.Client) -> None:
    response = client.post("/generate", json=request_body([], max_new_tokens=1))

    assert response.status_code == 400
    assert response.json()["error"]["message"]


@pytest.mark.parametrize("content", [b'{"input_ids": [1, 2', b"", b'{"input_ids": "x y"}', b"[]"])
def test_a_body_that_cannot_be_read_is_400_of_the_error_object_shape(
    client: httpx.Client, content: bytes
) -> None:
    headers = {"content-type": "application/json"}

    response = client.post("/generate", content=content, headers=headers)

    assert response.status_code == 400
    answer = response.json()
    assert answer["object"] == "error"
    assert answer["code"] == 400
    assert answer["message"]


def test_a_rid_that_is_still_running_is_400_and_does_not_disturb_the_first(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    rid = "contract-twice-1"
    long_body = request_body(prompt_ids, max_new_tokens=engine.context_tokens // 2)

    with live_stream(client, {**long_body, "rid": rid}) as events:
        first = next(events)
        second = client.post("/generate", json={**long_body, "rid": rid})
        later = next(events)

    assert second.status_code == 400
    assert rid in second.json()["error"]["message"]
    assert first["meta_info"]["id"] == later["meta_info"]["id"] == rid
    assert later["meta_info"]["finish_reason"] is None
    wait_until(lambda: running_requests(client) == 0, "no request is running")
