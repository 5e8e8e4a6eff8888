"""What a worker measures of its answers: lengths of all, times of those that it saw whole."""

import re
from array import array
from datetime import UTC, datetime
from pathlib import Path

import httpx
import orjson
import pytest

from app.core.spread import Measure, Spread
from app.core.types import Claim, SampleId
from app.ledger import measures
from app.simulator.server import SimulatorThread
from app.worker.call import Call
from tests.stage import Stage, random_texts


def a_call(held: int = 0) -> Call:
    claim = Claim(
        sample_id=SampleId(1),
        position=0,
        index=0,
        replica=0,
        key="row0",
        attempt=1,
        charged=0,
        server_deaths=0,
        rid="rid",
        prompt_tokens=3,
        token_offset=0,
        prompt_sha256="",
        max_new_tokens=64,
        held=array("I", range(held)),
    )
    now = datetime(2026, 1, 2, tzinfo=UTC)
    call = Call(claim=claim, prompt=array("I", [1, 2, 3]), server="", gen_id="", started_at=now)
    call.sent_at_s, call.first_ids_at_s, call.ended_at_s = 1.0, 1.25, 3.0009
    return call


def test_times_are_whole_milliseconds_since_the_request_was_sent() -> None:
    call = a_call()

    assert (call.first_token_ms, call.latency_ms) == (250, 2_000)


def test_times_of_a_continued_answer_are_not_known() -> None:
    call = a_call(held=5)

    assert (call.first_token_ms, call.latency_ms) == (None, None)


def test_an_answer_that_came_in_one_piece_has_no_first_token() -> None:
    """A server, or something before it, that does not stream: only the end was seen."""
    call = a_call()
    meta = {"completion_tokens": 2, "prompt_tokens": 3, "finish_reason": {"type": "stop"}}
    call.answer.whole(orjson.dumps({"output_ids": [7, 8], "meta_info": meta}))

    assert call.answer.ids.tolist() == [7, 8]
    assert (call.first_token_ms, call.latency_ms) == (None, 2_000)


def test_a_call_that_was_never_sent_has_no_times() -> None:
    call = a_call()
    call.sent_at_s = None

    assert (call.first_token_ms, call.latency_ms) == (None, None)


def measured(stage: Stage) -> dict[Measure, Spread]:
    return measures.spreads(stage.ledger, stage.partition_id)


def total(spread: Spread) -> int:
    return sum(bucket.total for bucket in spread.buckets)


@pytest.mark.slow
async def test_the_times_contain_what_the_server_says_it_took(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.set(time_factor=10)
    stage = Stage(tmp_path, simulator.url, max_new_tokens=300)
    stage.fill(random_texts(30, seed=8, mark="@@mean=200"))

    await stage.work()

    found = measured(stage)
    lines = stage.lines()
    n_cut = sum(line["status"] == "truncated" for line in lines)
    assert 0 < n_cut < 30
    assert {kind: spread.n for kind, spread in found.items()} == {
        Measure.OUTPUT: 30,
        Measure.OUTPUT_CUT: n_cut,
        Measure.PROMPT: 30,
        Measure.FIRST_TOKEN: 30,
        Measure.LATENCY: 30,
    }
    assert found[Measure.OUTPUT] == Spread.of(line["completion_tokens"] for line in lines)
    assert found[Measure.PROMPT] == Spread.of(line["prompt_tokens"] for line in lines)
    assert total(found[Measure.FIRST_TOKEN]) + 30 >= 1000 * await _server_first_token_s(simulator)
    assert total(found[Measure.FIRST_TOKEN]) < total(found[Measure.LATENCY])
    slowest = max(_seconds(line) for line in lines)
    assert found[Measure.LATENCY].buckets[-1].least <= 1000 * slowest + 1
    stage.assert_consistent()


async def _server_first_token_s(simulator: SimulatorThread) -> float:
    """Return the server's own sum of first-token times: ours begin earlier and end later."""
    async with httpx.AsyncClient(trust_env=False) as client:
        shown = (await client.get(f"{simulator.url}/metrics")).text
    (found,) = re.findall(r"^sglang:time_to_first_token_seconds_sum\{.*\} (\S+)$", shown, re.M)
    assert float(found) > 0
    return float(found)


def _seconds(line: dict[str, str]) -> float:
    begin, end = (datetime.fromisoformat(line[name]) for name in ("started_at", "finished_at"))
    return (end - begin).total_seconds()


@pytest.mark.slow
async def test_of_continued_answers_only_the_lengths_are_measured(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.set(time_factor=20)
    stage = Stage(tmp_path, simulator.url, max_new_tokens=900)
    stage.fill(random_texts(4, seed=5, mark="@@len=800"))
    await stage.work(lambda view: view.tokens.held >= 800)

    await stage.work()

    found = measured(stage)
    n_whole = sum(len(line["segments"]) == 1 for line in stage.lines())
    assert found[Measure.OUTPUT] == Spread.of([800] * 4)
    assert n_whole < 4
    assert found[Measure.LATENCY].n == found[Measure.FIRST_TOKEN].n == n_whole
