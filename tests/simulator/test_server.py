"""Life of the server: reports, overrides, counters, hard stop, restart, and as a process."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable

import httpx
import pytest

from tests.simulator.talk import HANG_BOUND_S, Talk, ids_of, wait_until


def test_reports_tell_capacity_and_identity_under_both_names(start: Callable[..., Talk]) -> None:
    talk = start(context_length=5_000, kv_tokens=9_000, incremental=True, model_path="/models/m")
    facts = talk.http.get("/server_info").json()
    assert facts["max_total_num_tokens"] == 9_000
    assert facts["max_req_input_len"] == 4_994
    assert facts["incremental_streaming_output"] is True
    assert facts["port"] == talk.simulator.port
    assert talk.http.get("/get_server_info").json().keys() == facts.keys()
    assert talk.http.get("/v1/models").json()["data"][0]["max_model_len"] == 5_000
    model = talk.http.get("/model_info").json()
    assert model == talk.http.get("/get_model_info").json()
    assert (model["model_path"], model["weight_version"]) == ("/models/m", "default")


def test_loads_and_metrics_show_the_running_request(start: Callable[..., Talk]) -> None:
    talk = start(time_factor=5)
    body = talk.body("a @@len=9000", stream=True, max_new_tokens=9000)
    with talk.http.stream("POST", "/generate", json=body):
        wait_until(lambda: talk.simulator.stats.delivered_tokens > 5, "some tokens")
        load = talk.http.get("/v1/loads").json()["loads"][0]
        text = talk.http.get("/metrics").text
    assert (load["num_running_reqs"], load["num_waiting_reqs"]) == (1, 0)
    assert load["num_used_tokens"] > len(ids_of("a @@len=9000"))
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    rank = 'engine_type="unified",model_name="/models/toy",moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    assert lines[f"sglang:num_running_reqs{{{rank}}}"] == "1.0"
    decode = f'engine_type="unified",mode="decode",{rank.split(",", 1)[1]}'
    assert float(lines[f"sglang:realtime_tokens_total{{{decode}}}"]) > 5
    assert "sglang:time_to_first_token_seconds_count" in text


def test_counters_of_metrics_move_when_a_request_ends(start: Callable[..., Talk]) -> None:
    talk = start(instant=True)
    talk.ask("a @@len=20", max_new_tokens=30)
    text = talk.http.get("/metrics").text
    labels = 'engine_type="unified",is_streaming="false",model_name="/models/toy"'
    assert f"sglang:generation_tokens_total{{{labels}}} 20.0" in text
    assert f"sglang:num_requests_total{{{labels}}} 1.0" in text


def test_overridden_endpoints_answer_what_they_are_told(start: Callable[..., Talk]) -> None:
    talk = start()
    talk.simulator.script(
        None,
        endpoints={
            "/health": [503, "no"],
            "/server_info": ["json", {"context_length": 4096, "tp_size": 8}],
            "/get_server_info": [404, {"detail": "Not Found"}],
            "/metrics": ["text", 'sglang:num_running_reqs{tp_rank="0"} 4\n'],
        },
    )
    assert talk.http.get("/health").status_code == 503
    facts = talk.http.get("/server_info").json()
    assert (facts["tp_size"], facts["context_length"], facts["version"]) == (8, 4096, "0.5.23")
    assert talk.http.get("/v1/models").json()["data"][0]["max_model_len"] == 4096
    assert talk.http.get("/get_server_info").status_code == 404
    assert talk.http.get("/metrics").text == 'sglang:num_running_reqs{tp_rank="0"} 4\n'
    talk.simulator.script(None, endpoints={})
    assert talk.http.get("/v1/models").json()["data"][0]["max_model_len"] == 32_768


def test_settings_change_while_it_runs_and_unknown_ones_are_named(
    start: Callable[..., Talk],
) -> None:
    talk = start(instant=True)
    talk.simulator.set(weight_version="v2", loading=True)
    assert talk.ask("a").json()["meta_info"]["weight_version"] == "v2"
    assert talk.http.get("/health").status_code == 503
    answer = talk.http.post("/sim/set", json={"port": 1})
    assert answer.status_code == 400
    assert "cannot set port while running" in answer.json()["error"]
    assert talk.http.post("/sim/set", json={"loading": False}).status_code == 200
    assert talk.http.get("/health").status_code == 200


def test_stats_tell_what_was_asked_and_what_came_of_it(start: Callable[..., Talk]) -> None:
    talk = start(instant=True)
    talk.http.post("/generate", json=talk.body("a @@len=9", max_new_tokens=7) | {"rid": "r-1"})
    stats = talk.http.get("/sim/stats").json()
    (entry,) = stats["log"]
    assert (entry["rid"], entry["row"], entry["outcome"]) == ("r-1", "a @@len=9", "length")
    assert (entry["max_new_tokens"], entry["tokens_sent"]) == (7, 7)
    assert entry["n_input_ids"] == len(ids_of("a @@len=9"))
    assert (stats["calls"], stats["max_in_flight"]) == ({"a @@len=9": 1}, 1)
    assert stats["tcp_accepts"] == 1
    assert talk.http.get("/sim/counters").json().keys() == stats.keys() - {"log"}
    talk.http.post("/sim/reset")
    assert talk.http.get("/sim/stats").json()["calls"] == {}


def test_script_and_freeze_work_over_http_too(start: Callable[..., Talk]) -> None:
    talk = start(instant=True)
    assert talk.http.post("/sim/script", json={"*": ["ok"]}).status_code == 200
    assert talk.ask("a").json()["text"] == "TU"
    assert talk.http.post("/sim/script", json={"*": ["what"]}).status_code == 400
    talk.http.post("/sim/freeze")
    assert talk.http.get("/sim/stats").json()["frozen"] is True
    talk.http.post("/sim/unfreeze")
    assert talk.http.get("/sim/stats").json()["frozen"] is False


def test_hard_stop_cuts_streams_refuses_and_comes_back_on_the_same_port(
    start: Callable[..., Talk],
) -> None:
    talk = start()
    body = talk.body("a @@len=9000", stream=True, max_new_tokens=9000)
    raw = talk.cut_stream(body, talk.simulator.stop)
    assert b"[DONE]" not in raw
    with pytest.raises(httpx.ConnectError):
        httpx.get(talk.simulator.url + "/health", timeout=HANG_BOUND_S)
    address = talk.simulator.url
    talk.simulator.start()
    assert talk.simulator.url == address
    assert talk.http.get("/health").status_code == 200
    assert talk.simulator.stats.calls == {"a @@len=9000": 1}
    assert talk.simulator.stats.running == talk.simulator.stats.in_flight == 0


def test_process_prints_its_address_serves_and_ends_on_sigterm() -> None:
    command = [sys.executable, "-m", "app.simulator", "--port", "0", "--time-factor", "10"]
    command += ["--incremental", "--mean-tokens", "50"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["url"]
        facts = httpx.get(address + "/server_info", timeout=HANG_BOUND_S).json()
        assert facts["incremental_streaming_output"] is True
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_BOUND_S) == 0
    finally:
        process.kill()
        process.communicate()


def test_process_dies_of_poison_with_status_1() -> None:
    command = [sys.executable, "-m", "app.simulator", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["url"]
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(address + "/generate", json={"input_ids": [5000]}, timeout=HANG_BOUND_S)
        assert process.wait(HANG_BOUND_S) == 1
