"""The contract of ending early: abort by rid, abort of nothing, a client that hangs up."""

import httpx

from tests.contract.exchange import (
    Engine,
    Json,
    generate,
    joined_ids,
    live_stream,
    metric_sum,
    request_body,
    running_requests,
    wait_until,
)


def long_request(prompt_ids: list[int], engine: Engine, rid: str) -> Json:
    body = request_body(prompt_ids, max_new_tokens=engine.context_tokens - len(prompt_ids) - 8)
    return {**body, "rid": rid}


def test_an_abort_by_rid_ends_a_running_stream_with_what_it_has(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    rid = "contract-abort-1"

    with live_stream(client, long_request(prompt_ids, engine, rid)) as stream:
        events = [next(stream) for _ in range(5)]
        abort = client.post("/abort_request", json={"rid": rid})
        events += stream

    ids = joined_ids(tuple(events), incremental=engine.incremental)
    last = events[-1]["meta_info"]
    assert (abort.status_code, abort.content) == (200, b"")
    assert last["finish_reason"]["type"] == "abort"
    assert [event["meta_info"]["finish_reason"] for event in events[:-1]] == [None] * (
        len(events) - 1
    )
    assert 5 <= len(ids) == last["completion_tokens"] < engine.context_tokens // 2
    assert ids == generate(client, prompt_ids, max_new_tokens=len(ids))["output_ids"]


def test_an_aborted_answer_can_be_continued_to_the_uninterrupted_one(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    rid = "contract-abort-2"
    with live_stream(client, long_request(prompt_ids, engine, rid)) as stream:
        events = [next(stream) for _ in range(3)]
        client.post("/abort_request", json={"rid": rid})
        events += stream
    kept = joined_ids(tuple(events), incremental=engine.incremental)

    rest = generate(client, prompt_ids + kept, max_new_tokens=20)["output_ids"]

    whole = generate(client, prompt_ids, max_new_tokens=len(kept) + 20)["output_ids"]
    assert kept + rest == whole


def test_an_abort_of_one_rid_leaves_the_others_running(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    with (
        live_stream(client, long_request(prompt_ids, engine, "contract-left-a")) as left,
        live_stream(client, long_request(prompt_ids, engine, "contract-left-b")) as ended,
    ):
        next(left)
        next(ended)
        client.post("/abort_request", json={"rid": "contract-left-b"})
        last = list(ended)[-1]
        still = next(left)

    assert last["meta_info"]["finish_reason"]["type"] == "abort"
    assert still["meta_info"]["finish_reason"] is None
    wait_until(lambda: running_requests(client) == 0, "no request is running")


def test_an_abort_of_an_unknown_rid_is_200_and_empty(client: httpx.Client) -> None:
    response = client.post("/abort_request", json={"rid": "contract-never-sent"})

    assert response.status_code == 200
    assert response.content == b""


def test_a_client_that_hangs_up_frees_the_running_slot(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    name = "sglang:generation_tokens_total"
    before = metric_sum(client, name)
    with live_stream(client, long_request(prompt_ids, engine, "contract-hang-up")) as stream:
        seen = next(stream)
        wait_until(lambda: running_requests(client) > 0, "the request is running")

    assert seen["meta_info"]["finish_reason"] is None
    wait_until(lambda: running_requests(client) == 0, "no request is running")
    # A later answer is counted after it: had it run to its end, its ids would be in the count.
    generate(client, prompt_ids, max_new_tokens=8)
    wait_until(lambda: metric_sum(client, name) >= before + 8, f"{name} counts a later answer")
    assert metric_sum(client, name) < before + engine.context_tokens // 2
