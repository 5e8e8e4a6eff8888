"""Every shape in which the server says no, streamed and whole."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.simulator.talk import HANG_BOUND_S, Talk, ids_of, wait_until


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"input_ids": [1, 2', "JSON decode error"),
        (b"", "Field required"),
        (b"[1,2]", "Input should be a dictionary"),
        (b'{"input_ids": ["a"]}', "elements must be int or list; got str"),
        (b'{"input_ids": [1.5]}', "elements must be int or list; got float"),
        (b'{"input_ids": [1], "rid": 5}', "2 validation errors"),
        (b'{"input_ids": [1], "stream": "perhaps"}', "valid boolean"),
    ],
)
def test_broken_body_is_a_400_of_the_parser(
    start: Callable[..., Talk], body: bytes, words: str
) -> None:
    headers = {"content-type": "application/json"}
    answer = start().http.post("/generate", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["object"] == "error"
    assert answer.json()["code"] == 400
    assert words in answer.json()["message"]


@pytest.mark.parametrize("stream", [True, False])
def test_unknown_sampling_key_is_a_400_with_a_plain_string(
    start: Callable[..., Talk], stream: bool
) -> None:
    talk = start()
    answer = talk.http.post("/generate", json=talk.body("x", stream=stream, topp=1))
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("unknown field `topp`, expected one of `max_new_tok")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sampling_params": {"top_p": 2}}, "top_p must be in (0, 1], got 2."),
        ({"sampling_params": {"max_new_tokens": -1}}, "max_new_tokens must be at least 0, got -1."),
        ({"sampling_params": {"max_new_tokens": 32_760}}, "You requested a total of"),
        ({"input_ids": []}, "input_ids cannot be empty."),
        ({"input_ids": None}, "Either text, input_ids or input_embeds should be provided."),
        ({"input_ids": [9] * 40_000}, "(40000 tokens) is longer than the model's context length"),
    ],
)
def test_bad_value_is_a_400_or_an_error_event(
    start: Callable[..., Talk], change: dict[str, Any], words: str
) -> None:
    talk = start()
    body = talk.body("some prompt") | change
    whole = talk.http.post("/generate", json=body)
    assert whole.status_code == 400
    assert words in whole.json()["error"]["message"]
    event, done = talk.events(body | {"stream": True})
    assert done == "[DONE]"
    assert words in event["error"]["message"]
    assert (event["error"]["code"], event["error"]["retryable"]) == (400, False)


def test_rid_in_use_is_refused_and_free_again_afterwards(start: Callable[..., Talk]) -> None:
    talk = start()
    talk.simulator.freeze()
    body = talk.body("slow @@len=5") | {"rid": "same"}
    with talk.http.stream("POST", "/generate", json=body | {"stream": True}) as first:
        second = talk.http.post("/generate", json=body)
        assert second.status_code == 400
        assert second.json() == {"error": {"message": "Duplicate request ID detected: same"}}
        talk.simulator.unfreeze()
        assert b"[DONE]" in first.read()
    assert talk.http.post("/generate", json=body).status_code == 200
    assert talk.simulator.stats.duplicate_rids == 2


def test_strict_server_refuses_any_rid_it_has_seen(start: Callable[..., Talk]) -> None:
    talk = start(instant=True, reject_seen_rids=True)
    body = talk.body("x") | {"rid": "once"}
    codes = [talk.http.post("/generate", json=body).status_code for _ in range(2)]
    assert codes == [200, 400]


@pytest.mark.parametrize("poison", [{"input_ids": [1, 2048]}, {"input_ids": [1, -1]}, {"text": ""}])
def test_poison_closes_every_connection_and_the_port(
    start: Callable[..., Talk], poison: dict[str, Any]
) -> None:
    talk = start()
    with pytest.raises(httpx.RemoteProtocolError):
        talk.http.post("/generate", json=poison)
    wait_until(lambda: not talk.simulator.alive, "the end of the server")
    with pytest.raises(httpx.ConnectError):
        httpx.get(talk.simulator.url + "/health", timeout=HANG_BOUND_S)


def test_poison_can_be_made_harmless(start: Callable[..., Talk]) -> None:
    talk = start(poison_kills=False)
    assert talk.http.post("/generate", json={"input_ids": [1, 99_999]}).status_code == 400


def test_full_queue_is_a_503_or_an_abort_event(start: Callable[..., Talk]) -> None:
    talk = start(max_running=1, max_queued=1)
    long = talk.body("a @@len=9000", stream=True, max_new_tokens=9000)
    stats = talk.simulator.stats
    with talk.http.stream("POST", "/generate", json=long):
        wait_until(lambda: stats.running == 1, "the first to run")
        with talk.http.stream("POST", "/generate", json=long):
            wait_until(lambda: stats.queued == 1, "the second to wait")
            whole = talk.ask("b")
            event, done = talk.stream("c")
    assert whole.status_code == 503
    assert whole.json()["message"] == "The request queue is full."
    assert done == "[DONE]"
    assert event["output_ids"] == []
    assert event["meta_info"]["finish_reason"] == {
        "type": "abort",
        "status_code": 503,
        "message": "The request queue is full.",
    }
    assert "prompt_tokens" not in event["meta_info"]


def test_api_key_guards_all_but_health_and_metrics(start: Callable[..., Talk]) -> None:
    talk = start(instant=True, api_key="sekret")
    for path in ("/server_info", "/v1/models", "/v1/loads", "/model_info"):
        answer = talk.http.get(path)
        assert (answer.status_code, answer.json()) == (401, {"error": "Unauthorized"})
    assert talk.http.get("/health").status_code == talk.http.get("/metrics").status_code == 200
    headers = {"authorization": "Bearer sekret"}
    body = {"input_ids": ids_of("x")}
    assert talk.http.post("/generate", json=body).status_code == 401
    assert talk.http.post("/generate", json=body, headers=headers).status_code == 200
    facts = talk.http.get("/server_info", headers=headers).json()
    assert facts["api_key"] == "sekret"
    assert "sekret" in facts["launch_command"]


def test_unknown_path_is_not_found(start: Callable[..., Talk]) -> None:
    talk = start()
    answer = talk.http.get("/nope")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})
