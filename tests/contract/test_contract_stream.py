"""The contract of a stream: its bytes, its order, its end, and what each event holds."""

import json
from itertools import pairwise

import httpx
import pytest

from tests.contract.exchange import Engine, generate, parse_stream, read_stream, request_body

STREAM_TOKENS = 40


def test_a_stream_is_data_lines_with_a_blank_line_and_a_done_mark(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    body = request_body(prompt_ids, stream=True, max_new_tokens=STREAM_TOKENS)

    response = client.post("/generate", json=body)

    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.content.endswith(b"\n\ndata: [DONE]\n\n")
    frames = response.content.split(b"\n\n")
    assert frames[-1] == b""
    for frame in frames[:-2]:
        assert frame.startswith(b"data: {")
        assert b"\n" not in frame
        assert json.loads(frame.removeprefix(b"data: ")).keys() >= {"output_ids", "meta_info"}


def test_only_the_last_event_of_a_stream_has_a_finish_reason(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    answer = read_stream(client, prompt_ids, max_new_tokens=STREAM_TOKENS)

    reasons = [event["meta_info"]["finish_reason"] for event in answer.events]
    assert answer.done
    assert len(reasons) > 1
    assert reasons[:-1] == [None] * (len(reasons) - 1)
    assert reasons[-1] == {"type": "length", "length": STREAM_TOKENS}


def test_the_count_of_a_stream_only_grows_and_ends_at_what_was_asked(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    counts = read_stream(client, prompt_ids, max_new_tokens=STREAM_TOKENS).completion_tokens()

    assert counts == sorted(counts)
    assert counts[-1] == STREAM_TOKENS
    assert len(counts) > 1


def test_every_event_holds_all_ids_so_far_or_only_the_new_ones_as_the_server_says(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    answer = read_stream(client, prompt_ids, max_new_tokens=STREAM_TOKENS)

    so_far: list[int] = []
    for event in answer.events:
        ids = event["output_ids"]
        if engine.incremental:
            so_far += ids
        else:
            assert ids[: len(so_far)] == so_far
            so_far = ids
        assert len(so_far) == event["meta_info"]["completion_tokens"]


def test_a_stream_holds_the_ids_of_the_whole_answer(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    whole = generate(client, prompt_ids, max_new_tokens=STREAM_TOKENS)

    answer = read_stream(client, prompt_ids, max_new_tokens=STREAM_TOKENS)

    assert answer.output_ids(incremental=engine.incremental) == whole["output_ids"]


@pytest.mark.parametrize("interval", [4, 16])
def test_a_stream_interval_holds_back_events(
    client: httpx.Client, engine: Engine, prompt_ids: list[int], interval: int
) -> None:
    answer = read_stream(client, prompt_ids, max_new_tokens=STREAM_TOKENS, stream_interval=interval)

    counts = answer.completion_tokens()
    # The last event comes when the answer ends, however few ids are left for it.
    steps = [after - before for before, after in pairwise(counts[:-1])]
    assert counts[-1] == STREAM_TOKENS
    assert len(counts) <= STREAM_TOKENS // interval + 2
    assert all(step >= interval for step in steps)
    assert len(answer.output_ids(incremental=engine.incremental)) == STREAM_TOKENS


def test_a_stop_id_ends_a_stream_and_stays_in_it(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    free = generate(client, prompt_ids, max_new_tokens=STREAM_TOKENS)["output_ids"]
    stop_id = free[6]

    answer = read_stream(
        client,
        prompt_ids,
        max_new_tokens=STREAM_TOKENS,
        ignore_eos=False,
        stop_token_ids=[stop_id],
    )

    expected = free[: free.index(stop_id) + 1]
    assert answer.output_ids(incremental=engine.incremental) == expected
    assert answer.events[-1]["meta_info"]["finish_reason"] == {"type": "stop", "matched": stop_id}


def test_a_streamed_greedy_answer_goes_on_where_its_first_part_ended(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    whole = generate(client, prompt_ids, max_new_tokens=STREAM_TOKENS)["output_ids"]

    rest = read_stream(client, prompt_ids + whole[:15], max_new_tokens=STREAM_TOKENS - 15)

    assert whole[:15] + rest.output_ids(incremental=engine.incremental) == whole


def test_a_prompt_too_long_is_an_error_event_in_a_good_stream(
    client: httpx.Client, engine: Engine, prompt_ids: list[int]
) -> None:
    too_long = prompt_ids[:1] * (engine.context_tokens + 8)

    response = client.post("/generate", json=request_body(too_long, stream=True, max_new_tokens=1))

    answer = parse_stream(response.content)
    assert response.status_code == 200
    assert answer.done
    (event,) = answer.events
    assert event.keys() == {"error"}
    assert event["error"]["code"] == 400
    assert str(len(too_long)) in event["error"]["message"]
