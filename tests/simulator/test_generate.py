"""POST /generate as a healthy server answers it: whole, streamed, limits and stops."""

from collections.abc import Callable

import pytest

from app.simulator.answers import answer
from app.simulator.tokenizer import END_ID, decode, encode
from tests.simulator.talk import Talk, ids_of

META_KEYS = {
    *("id", "finish_reason", "prompt_tokens", "weight_version", "num_retractions"),
    *("storage_prefetch_wait", "storage_staging_wait", "forward_entry_time", "queue_time"),
    *("prefill_finished_time", "reasoning_tokens", "completion_tokens", "cached_tokens"),
    *("weight_versions", "cached_tokens_details", "dp_rank", "e2e_latency"),
    *("request_received_ts", "first_token_latency", "api_server_dispatch_finish_ts"),
    *("request_finished_ts", "decode_throughput", "response_sent_to_client_ts"),
}


def test_whole_answer_is_the_oracles_with_all_fields_of_a_real_one(
    start: Callable[..., Talk],
) -> None:
    talk = start(time_factor=50)
    response = talk.ask("Hi @@len=30", max_new_tokens=100)
    body = response.json()
    expected = answer(ids_of("Hi @@len=30"), talk.simulator.settings.lengths, 100)
    assert body["output_ids"] == expected
    assert body["text"] == decode(expected)
    assert set(body["meta_info"]) == META_KEYS
    assert body["meta_info"]["finish_reason"] == {"type": "stop", "matched": END_ID}
    assert body["meta_info"]["completion_tokens"] == 30
    assert body["meta_info"]["prompt_tokens"] == len(ids_of("Hi @@len=30"))


def test_without_sampling_params_128_tokens_come(start: Callable[..., Talk]) -> None:
    talk = start(instant=True)
    body = talk.http.post("/generate", json={"text": "no mark @@len=500"}).json()
    assert len(body["output_ids"]) == 128
    assert body["meta_info"]["finish_reason"] == {"type": "length", "length": 128}


def test_put_text_and_asked_prompt_ids_work_as_in_a_real_server(start: Callable[..., Talk]) -> None:
    talk = start(instant=True)
    order = {"text": "ab", "return_prompt_token_ids": True, "unknown_top_level": 1}
    body = talk.http.put("/generate", json=order).json()
    assert body["prompt_token_ids"] == [1, *encode("ab")]
    assert talk.http.get("/generate").status_code == 405


@pytest.mark.parametrize("instant", [True, False])
def test_cumulative_stream_repeats_everything_in_each_event(
    start: Callable[..., Talk], instant: bool
) -> None:
    talk = start(instant=instant, time_factor=100)
    events = talk.stream("Hi @@len=50", max_new_tokens=80, stream_interval=20)
    assert events.pop() == "[DONE]"
    counts = [event["meta_info"]["completion_tokens"] for event in events]
    assert counts == [1, 21, 41, 50]
    whole = answer(ids_of("Hi @@len=50"), talk.simulator.settings.lengths, 80)
    assert [event["output_ids"] for event in events] == [whole[:count] for count in counts]
    assert [event["text"] for event in events] == [decode(whole[:count]) for count in counts]
    assert [e["meta_info"]["finish_reason"] for e in events[:-1]] == [None] * (len(events) - 1)


@pytest.mark.parametrize("instant", [True, False])
def test_incremental_stream_brings_each_id_once(start: Callable[..., Talk], instant: bool) -> None:
    talk = start(instant=instant, incremental=True, time_factor=100)
    events = talk.stream("Hi @@len=50", max_new_tokens=80, stream_interval=20)
    assert events.pop() == "[DONE]"
    whole = answer(ids_of("Hi @@len=50"), talk.simulator.settings.lengths, 80)
    assert [token for event in events for token in event["output_ids"]] == whole
    assert "".join(event["text"] for event in events) == decode(whole)
    assert events[-1]["meta_info"]["completion_tokens"] == 50


def test_stream_interval_of_the_server_holds_unless_the_request_has_its_own(
    start: Callable[..., Talk],
) -> None:
    talk = start(instant=True, stream_interval_tokens=10)
    assert len(talk.stream("Hi @@len=31", max_new_tokens=80)) == 1 + 3 + 1
    assert len(talk.stream("Hi @@len=31", max_new_tokens=80, stream_interval=15)) == 1 + 2 + 1


def test_half_an_answer_sent_back_is_continued_exactly(start: Callable[..., Talk]) -> None:
    talk = start(instant=True)
    whole = talk.ask("Go on @@len=300", max_new_tokens=400).json()["output_ids"]
    prompt = ids_of("Go on @@len=300")
    order = {"input_ids": prompt + whole[:123], "sampling_params": {"max_new_tokens": 277}}
    rest = talk.http.post("/generate", json=order).json()
    assert whole[:123] + rest["output_ids"] == whole
    assert rest["meta_info"]["prompt_tokens"] == len(prompt) + 123
    assert talk.simulator.stats.calls == {"Go on @@len=300": 2}


def test_ignore_eos_and_min_new_tokens_move_the_end(start: Callable[..., Talk]) -> None:
    talk = start(instant=True)
    ignoring = talk.ask("Hi @@len=20", max_new_tokens=60, ignore_eos=True).json()
    assert len(ignoring["output_ids"]) == 60
    assert END_ID not in ignoring["output_ids"]
    longer = talk.ask("Hi @@len=20", max_new_tokens=60, min_new_tokens=40).json()
    assert len(longer["output_ids"]) == 41
    assert longer["output_ids"][:19] == ignoring["output_ids"][:19]


def test_stop_id_stays_in_the_ids_and_leaves_the_text(start: Callable[..., Talk]) -> None:
    talk = start(instant=True)
    whole = talk.ask("Hi @@len=40", max_new_tokens=60).json()["output_ids"]
    stop = whole[12]
    cut = whole.index(stop)
    body = talk.ask("Hi @@len=40", max_new_tokens=60, stop_token_ids=[stop]).json()
    assert body["output_ids"] == whole[: cut + 1]
    assert body["text"] == decode(whole[:cut])
    assert body["meta_info"]["finish_reason"] == {"type": "stop", "matched": stop}


def test_stop_string_ends_the_answer_before_it(start: Callable[..., Talk]) -> None:
    talk = start(instant=True)
    text = talk.ask("Hi @@len=40", max_new_tokens=60).json()["text"]
    stop = text[60:66]
    body = talk.ask("Hi @@len=40", max_new_tokens=60, stop=[stop]).json()
    assert body["text"] == text[: text.index(stop)]
    assert stop in decode(body["output_ids"])
    assert body["meta_info"]["finish_reason"] == {"type": "stop", "matched": stop}


def test_without_text_the_key_is_absent(start: Callable[..., Talk]) -> None:
    talk = start(instant=True, send_text=False)
    assert set(talk.ask("Hi", max_new_tokens=4).json()) == {"output_ids", "meta_info"}


def test_answer_longer_than_the_pool_allows_is_cut_silently(start: Callable[..., Talk]) -> None:
    talk = start(time_factor=100, kv_tokens=400)
    prompt = [1] + [100] * 299
    order = {"input_ids": prompt, "sampling_params": {"max_new_tokens": 200, "ignore_eos": True}}
    body = talk.http.post("/generate", json=order).json()
    assert body["meta_info"]["finish_reason"] == {"type": "length", "length": 98}
    order["input_ids"] = [1] + [100] * 599
    refused = talk.http.post("/generate", json=order)
    assert refused.status_code == 400
    assert "(600 tokens) exceeds the maximum allowed length (394" in refused.text
    event, done = talk.events(order | {"stream": True})
    assert (event["output_ids"], done) == ([0], "[DONE]")
    assert event["meta_info"]["finish_reason"]["status_code"] == 400
