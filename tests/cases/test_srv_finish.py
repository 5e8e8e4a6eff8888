"""Cases srv-04 to srv-08: which end of a request is an answer, and which is none."""

from pathlib import Path
from typing import Any

import pytest

from app.simulator.server import SimulatorThread
from tests.cases.settings import calls, stage_of


async def test_srv_04_last_request_is_aborted_because_it_alone_exhausts_the_pool(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    reason = {"type": "abort", "message": "KV pool exhausted", "status_code": 507}
    out_of_memory = {"output_ids": [8, 8, 8], "meta_info": {"finish_reason": reason}}
    simulator.script({"@@oom": [{"gen": out_of_memory}], "*": ["ok"]})
    stage = stage_of(tmp_path, simulator, ["o1 @@oom", "o2"], max_attempts=2)

    await stage.work()

    assert stage.states() == {"o1": "failed", "o2": "ok"}
    assert calls(simulator)["o1"] == 2
    assert "KV pool exhausted" in stage.rows()["o1"]["reason"]
    assert [line["id"] for line in stage.lines()] == ["o2"]
    stage.assert_consistent()


async def test_srv_05_finish_reason_abort_with_empty_text(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    nothing = {"finish_reason": {"type": "abort"}, "completion_tokens": 0}
    aborted = {"gen": {"text": "", "output_ids": [], "meta_info": nothing}}
    always = {"gen": {"meta_info": {"finish_reason": {"type": "abort", "message": "x"}}}}
    simulator.script({"@@ab": [aborted, "ok"], "@@ab2": [always]})
    stage = stage_of(tmp_path, simulator, ["q1 @@ab", "q2 @@ab2"], max_attempts=3)

    await stage.work()

    assert stage.states() == {"q1": "ok", "q2": "failed"}
    assert calls(simulator) == {"q1": 2, "q2": 3}
    stage.assert_consistent()


FINISH_REASONS: dict[str, tuple[Any, str]] = {
    "f1": ({"type": "stop", "matched": 2}, "ok"),
    "f2": ({"type": "stop", "matched": "###"}, "ok"),
    "f3": ({"type": "length", "length": 16}, "truncated"),
    "f4": ("stop", "ok"),
    "f5": ("length", "truncated"),
    "f6": (None, "failed"),
    "f7": ("__absent__", "failed"),
    "f8": ({"type": "content_filter"}, "failed"),
}


async def test_srv_06_every_spelling_of_finish_reason(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    marks = {key: f"@@{key[1:]}" for key in FINISH_REASONS}
    simulator.script({marks[key]: [{"fr": fr}] for key, (fr, _) in FINISH_REASONS.items()})
    rows = [f"{key} {mark}" for key, mark in marks.items()]
    stage = stage_of(tmp_path, simulator, rows, max_attempts=1)

    await stage.work()

    assert stage.states() == {key: state for key, (_, state) in FINISH_REASONS.items()}
    for key, line in stage.answers().items():
        assert line["finish_reason"] == FINISH_REASONS[key][0]
    assert '"content_filter"' in stage.rows()["f8"]["reason"]
    assert "null" in stage.rows()["f6"]["reason"]
    stage.assert_consistent()


ENGINE_DIED = {"error": {"message": "engine died", "code": 500}}
BAD_REQUEST = {"error": {"message": "bad request"}}
PART = {"text": "par", "output_ids": [115, 100]}


@pytest.mark.parametrize(
    "script",
    [
        {"@@err": [{"sse": [PART, ENGINE_DIED, "[DONE]"]}], "@@body": [{"sse": [BAD_REQUEST]}]},
        {"@@err": [{"json": [200, ENGINE_DIED]}], "@@body": [{"json": [200, BAD_REQUEST]}]},
        {"@@err": [{"raw": ENGINE_DIED}], "@@body": [{"raw": BAD_REQUEST}]},
    ],
    ids=["streamed", "plain", "raw"],
)
async def test_srv_07_error_object_inside_a_200_event_stream(
    simulator: SimulatorThread, tmp_path: Path, script: dict[str, Any]
) -> None:
    simulator.script(script)
    stage = stage_of(tmp_path, simulator, ["e1 @@err", "e2 @@body"], max_attempts=2)

    await stage.work()

    rows = stage.rows()
    assert stage.states() == {"e1": "failed", "e2": "failed"}
    assert "engine died" in rows["e1"]["reason"]
    assert "bad request" in rows["e2"]["reason"]
    assert "KeyError" not in f"{rows}"
    assert calls(simulator) == {"e1": 2, "e2": 2}
    stage.assert_consistent()


async def test_srv_08_connection_closes_before_the_final_event(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    unfinished = {"sse": [{"text": "Hel"}], "end": "eof"}
    simulator.script({"@@cut": [unfinished, "ok"], "@@half": ["cut mid_body", "ok"]})
    stage = stage_of(tmp_path, simulator, ["s1 @@cut", "s2 @@half"], max_attempts=3)

    await stage.work()

    assert stage.states() == {"s1": "ok", "s2": "ok"}
    assert calls(simulator) == {"s1": 2, "s2": 2}
    assert {row["charged"] for row in stage.rows().values()} == {1}
    rids = [entry.rid for entry in simulator.stats.requests()]
    assert len(set(rids)) == len(rids) == 4
    stage.assert_consistent()
