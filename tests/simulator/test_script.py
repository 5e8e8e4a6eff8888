"""Every word of the script's language, on a real socket."""

from collections.abc import Callable
from random import Random
from typing import Any

import httpx
import pytest

from app.simulator.answers import answer
from app.simulator.script import Script, ScriptError, expand, read_action
from app.simulator.tokenizer import THINK_CLOSE_ID, THINK_OPEN_ID
from tests.simulator.talk import Talk, ids_of, parse_events, wait_until


def scripted(start: Callable[..., Talk], *entries: Any, **changes: Any) -> Talk:
    talk = start(**changes)
    talk.simulator.script({"*": list(entries)})
    return talk


def test_ok_is_the_default_answer_whole_and_streamed(start: Callable[..., Talk]) -> None:
    talk = scripted(start, "ok")
    body = talk.ask("a").json()
    assert (body["text"], body["output_ids"]) == ("TU", [87, 88, 2])
    meta = body["meta_info"]
    assert meta["finish_reason"] == {"type": "stop", "matched": 2}
    assert (meta["prompt_tokens"], meta["completion_tokens"]) == (len(ids_of("a")), 3)
    event, done = talk.stream("a")
    assert (event["output_ids"], done) == ([87, 88, 2], "[DONE]")


def test_entries_follow_each_other_per_row_and_the_last_repeats(
    start: Callable[..., Talk],
) -> None:
    talk = scripted(start, {"json": [500, {}]}, {"json": [503, {}]}, "ok")
    assert [talk.ask("a").status_code for _ in range(4)] == [500, 503, 200, 200]
    assert talk.ask("b").status_code == 500
    assert talk.simulator.stats.calls == {"a": 4, "b": 1}


def test_marker_is_a_whole_word_and_rows_without_one_go_to_the_model(
    start: Callable[..., Talk],
) -> None:
    talk = start(instant=True)
    talk.simulator.script({"@@ab": [{"json": [400, {}]}], "@@ab2": ["ok"]})
    assert talk.ask("x @@ab").status_code == 400
    assert talk.ask("x @@ab2").json()["text"] == "TU"
    assert len(talk.ask("x @@len=9").json()["output_ids"]) == 9
    talk.simulator.script({"@@ab": ["ok"], "default": "ok"})
    assert talk.ask("x").json()["text"] == "TU"


def test_gen_merges_deeply_builds_lists_and_counts_its_ids(start: Callable[..., Talk]) -> None:
    talk = scripted(start, {"gen": {"output_ids": "[36]*400", "meta_info": {"cached_tokens": 5}}})
    body = talk.ask("a").json()
    assert body["output_ids"] == [36] * 400
    meta = body["meta_info"]
    assert (meta["completion_tokens"], meta["cached_tokens"], body["text"]) == (400, 5, "TU")


def test_gen_can_say_null_ids(start: Callable[..., Talk]) -> None:
    body = scripted(start, {"gen": {"output_ids": None}}).ask("a").json()
    assert body["output_ids"] is None
    assert body["meta_info"]["completion_tokens"] == 3


@pytest.mark.parametrize("reason", [None, "stop", {"type": "length", "length": 16}])
def test_fr_sets_the_finish_reason(start: Callable[..., Talk], reason: Any) -> None:
    body = scripted(start, {"fr": reason}).ask("a").json()
    assert body["meta_info"]["finish_reason"] == reason


def test_fr_absent_removes_the_finish_reason(start: Callable[..., Talk]) -> None:
    body = scripted(start, {"fr": "__absent__"}).ask("a").json()
    assert "finish_reason" not in body["meta_info"]


def test_json_and_raw_are_sent_as_they_stand_also_to_a_stream(
    start: Callable[..., Talk],
) -> None:
    talk = scripted(start, {"json": [503, {"a": 1}], "headers": {"Retry-After": "2"}})
    for stream in (True, False):
        answer = talk.http.post("/generate", json=talk.body("a", stream=stream))
        assert (answer.status_code, answer.json()) == (503, {"a": 1})
        assert answer.headers["retry-after"] == "2"
    talk.simulator.script({"*": [{"raw": '{"id":"$rid","n":"$n","x":NaN}'}]})
    answer = talk.http.post("/generate", json=talk.body("a", stream=True) | {"rid": "r1"})
    assert answer.text == f'{{"id":"r1","n":{len(ids_of("a"))},"x":NaN}}'


def test_sse_events_are_closed_properly_or_cut_off(start: Callable[..., Talk]) -> None:
    events = [{"output_ids": [87]}, "[DONE]"]
    talk = scripted(start, {"sse": events}, {"sse": events[:1], "end": "eof"})
    assert talk.stream("a") == events
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
        talk.stream("a")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("entry", ["cut before_headers", "cut mid_body"])
def test_cut_resets_the_connection(start: Callable[..., Talk], entry: str, stream: bool) -> None:
    talk = scripted(start, entry, "ok")
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        talk.http.post("/generate", json=talk.body("a", stream=stream))
    assert talk.ask("a").status_code == 200
    assert talk.simulator.stats.in_flight == 0


def test_hang_answers_nothing_until_the_client_leaves(start: Callable[..., Talk]) -> None:
    talk = scripted(start, "hang")
    with pytest.raises(httpx.ReadTimeout):
        talk.http.post("/generate", json=talk.body("a", stream=True), timeout=0.2)
    wait_until(lambda: talk.simulator.stats.in_flight == 0, "the request to be out of the books")


def test_exit_ends_the_server_and_a_start_brings_it_back_on_the_same_port(
    start: Callable[..., Talk],
) -> None:
    talk = scripted(start, "exit", "ok")
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        talk.ask("a")
    wait_until(lambda: not talk.simulator.alive, "the end of the server")
    address = talk.simulator.url
    talk.simulator.start()
    assert talk.simulator.url == address
    assert talk.ask("a").json()["text"] == "TU"
    assert talk.simulator.stats.calls == {"a": 2}


def test_delay_can_be_fixed_drawn_or_change_after_some_rows() -> None:
    assert read_action("ok delay=8").delay.draw_s(0) == 8
    assert read_action("ok delay=12, ignores disconnect").ignores_disconnect
    drawn = read_action("ok delay=random 0.1..2 (seed 7)").delay
    assert drawn.draw_s(0) == Random(7).uniform(0.1, 2)
    later = read_action("ok delay=0.5 for first 200 rows, then delay=7").delay
    assert (later.draw_s(199), later.draw_s(200)) == (0.5, 7)


def test_delayed_answer_comes_and_counts_as_in_flight_meanwhile(
    start: Callable[..., Talk],
) -> None:
    talk = scripted(start, "ok delay=200", delay_scale=0.0005)
    assert talk.ask("a").json()["text"] == "TU"
    assert talk.simulator.stats.max_in_flight == 1


def test_abort_ends_a_scripted_delay_at_once(start: Callable[..., Talk]) -> None:
    talk = scripted(start, "ok delay=500")
    body = talk.body("a", stream=True) | {"rid": "r"}
    with talk.http.stream("POST", "/generate", json=body) as response:
        talk.http.post("/abort_request", json={"rid": "r"})
        event, done = parse_events(response.read())
    assert (event["output_ids"], done) == ([], "[DONE]")
    assert event["meta_info"]["finish_reason"]["message"] == "Aborted"
    assert event["meta_info"]["completion_tokens"] == 0


def test_late_answer_ignores_that_the_client_has_left(start: Callable[..., Talk]) -> None:
    talk = scripted(start, "ok delay=0.4, ignores disconnect")
    with pytest.raises(httpx.ReadTimeout):
        talk.http.post("/generate", json=talk.body("a"), timeout=0.1)
    assert talk.simulator.stats.in_flight == 1
    wait_until(lambda: talk.simulator.stats.in_flight == 0, "the late answer to be over")


def test_frozen_server_holds_scripted_answers_back(start: Callable[..., Talk]) -> None:
    talk = scripted(start, "ok")
    talk.simulator.freeze()
    with talk.http.stream("POST", "/generate", json=talk.body("a", stream=True)) as response:
        assert talk.simulator.stats.delivered_tokens == 0
        talk.simulator.unfreeze()
        assert b"[DONE]" in response.read()


def test_ok_can_have_a_number_of_varied_output_tokens(start: Callable[..., Talk]) -> None:
    body = scripted(start, "ok with 100 output tokens, delay=0").ask("a").json()
    assert len(body["output_ids"]) == body["meta_info"]["completion_tokens"] == 100
    assert len(set(body["output_ids"])) > 30


def test_thinking_string_opens_and_never_closes() -> None:
    ids = expand({"output_ids": "<think> ids without </think>"})["output_ids"]
    assert ids[0] == THINK_OPEN_ID
    assert THINK_CLOSE_ID not in ids


def test_reject_refuses_rids_seen_before(start: Callable[..., Talk]) -> None:
    talk = scripted(start, "reject with 400 any rid seen before")
    body = talk.body("a") | {"rid": "r"}
    assert [talk.http.post("/generate", json=body).status_code for _ in range(2)] == [200, 400]


def test_cut_after_streams_the_models_first_ids_and_resets(start: Callable[..., Talk]) -> None:
    talk = scripted(start, {"cut_after": 30}, {"model": True}, incremental=True, time_factor=50)
    text = "a @@len=100"
    body = talk.body(text, stream=True, max_new_tokens=200, stream_interval=8)
    got = talk.cut_stream(body)
    assert b'"completion_tokens":30' in got
    assert b"[DONE]" not in got
    assert talk.simulator.stats.delivered_tokens == 30
    events = talk.events(body)
    whole = answer(ids_of(text), talk.simulator.settings.lengths, 200)
    assert [token for event in events[:-1] for token in event["output_ids"]] == whole


def test_hang_after_stands_still_with_the_ids_so_far(start: Callable[..., Talk]) -> None:
    talk = scripted(start, {"hang_after": 10}, instant=True)
    body = talk.body("a @@len=100", stream=True, max_new_tokens=200)
    stats = talk.simulator.stats
    with talk.http.stream("POST", "/generate", json=body):
        wait_until(lambda: stats.delivered_tokens == 10, "ten ids")
        assert stats.in_flight == 1
    wait_until(lambda: stats.in_flight == 0, "the request to be out of the books")


def test_abort_after_ends_by_the_server_with_its_status(start: Callable[..., Talk]) -> None:
    order = {"abort_after": 10, "status_code": 503, "message": "Request running timeout reached."}
    talk = scripted(start, order, instant=True)
    events = talk.stream("a @@len=100", max_new_tokens=200, stream_interval=4)
    assert events[-1] == "[DONE]"
    assert events[-2]["meta_info"]["finish_reason"]["status_code"] == 503
    assert len(events[-2]["output_ids"]) == 10
    assert talk.ask("a @@len=100", max_new_tokens=200).status_code == 503


def test_gap_after_drops_an_id_but_counts_it(start: Callable[..., Talk]) -> None:
    talk = scripted(start, {"gap_after": 10}, instant=True, incremental=True)
    events = talk.stream("a @@len=40", max_new_tokens=200, stream_interval=8)[:-1]
    ids = [token for event in events for token in event["output_ids"]]
    assert len(ids) == 39
    assert events[-1]["meta_info"]["completion_tokens"] == 40


@pytest.mark.parametrize("entry", ["perhaps", {"nonsense": 1}, []])
def test_entry_outside_the_language_is_refused(entry: Any) -> None:
    with pytest.raises(ScriptError):
        Script({"*": entry})
