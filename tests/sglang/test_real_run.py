"""Whole runs against the real server: from prompt files to sealed outputs, killed on the way."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from app.core.states import PartitionState
from tests.process.accounts import assert_books_balance
from tests.process.real_input import write_real_prompts
from tests.process.run_process import RunProcess, wait_for
from tests.sglang.real_server import RealServer

MAX_NEW_TOKENS = 96
GREEDY = "[defaults]\ntemperature = 0.0\n"
BOUND_S = 600.0


@pytest.fixture
def run(tmp_path: Path, real_server: RealServer) -> Iterator[RunProcess]:
    made = RunProcess(
        tmp_path,
        real_server.url,
        concurrency=16,
        max_new_tokens=MAX_NEW_TOKENS,
        spec_lines=GREEDY,
        environment={"LONGWATCH_TICK_S": "0.2"},
    )
    yield made
    made.close()


def test_real_prompts_from_file_to_sealed_output(run: RunProcess) -> None:
    counts = write_real_prompts(run.folder / "prompts")

    run.start()
    code = run.wait(BOUND_S)

    assert code == 0, run.log_tail()
    assert_books_balance(run)
    assert {view.name: view.counts.kept for view in run.partitions()} == counts
    for name, n in counts.items():
        lines = _lines(run, name)
        assert [line["index"] for line in lines] == list(range(n))
        for line in lines:
            assert line["completion_tokens"] == len(line["output_ids"])
            assert line["prompt_tokens"] > 0
            assert line["finish_reason"]


def test_pause_server_killed_and_resume_give_the_uninterrupted_answers(
    tmp_path: Path, doomed_server: RealServer
) -> None:
    server = doomed_server
    run = RunProcess(
        tmp_path,
        server.url,
        concurrency=8,
        max_new_tokens=600,
        # Long enough to be interrupted, in small steps, so that checkpoints are many.
        spec_lines="[defaults]\ntemperature = 0.0\nignore_eos = true\n",
        environment={"LONGWATCH_TICK_S": "0.2"},
    )
    run.spec.write_text(run.spec.read_text().replace("[run]\n", "[run]\nstream_interval = 16\n"))
    texts = [f"Tell me of the queue number {n}, at length." for n in range(24)]
    run.write_prompts("B1_p", texts)
    try:
        run.start()
        wait_for(lambda: _received(run) > 1_000, "tokens", BOUND_S)

        _order(run, "pause")
        wait_for(lambda: not run.worker_pids(), "the pause", BOUND_S)
        (paused,) = run.partitions()
        assert paused.counts.running == 0
        assert paused.tokens.held > 0
        assert _running_on(server) == 0
        server.kill9()
        server.restart()
        _order(run, "resume")
        wait_for(lambda: _received(run) > paused.tokens.received + 1_000, "more", BOUND_S)

        server.kill9()  # in the midst of its answers
        wait_for(lambda: run.partitions()[0].counts.running == 0, "samples put back", BOUND_S)
        server.restart()

        assert run.wait(BOUND_S) == 0, run.log_tail()
        assert_books_balance(run)
        (partition,) = run.partitions()
        assert partition.state is PartitionState.ACTIVE
        assert partition.tokens.wasted == 0
        assert partition.counts.ok + partition.counts.truncated + partition.counts.suspect == 24
        lines = _lines(run, "B1_p")
        assert sum(len(line["segments"]) > 1 for line in lines) >= 8
        for line, text in zip(lines, texts, strict=True):
            assert line["output_ids"] == _uninterrupted(server, text, 600), line["segments"]
    finally:
        run.close()


def test_a_budget_on_the_real_server_ends_within_five_percent(run: RunProcess) -> None:
    budget = 40_000
    run.max_new_tokens = 400
    run.spec.write_text(
        run.spec.read_text()
        .replace(f"max_new_tokens = {MAX_NEW_TOKENS}", "max_new_tokens = 400")
        .replace("temperature = 0.0", "temperature = 1.0")
        + f'[partition.B1_p]\ntoken_budget = "{budget}"\n'
    )
    run.write_prompts("B1_p", [f"Question {n}?" for n in range(400)])

    run.start()
    code = run.wait(BOUND_S)

    assert code == 0, run.log_tail()
    assert_books_balance(run)
    (partition,) = run.partitions()
    assert partition.counts.pending > 0
    assert abs(partition.tokens.kept / budget - 1) <= 0.05, partition.tokens


def _lines(run: RunProcess, partition: str) -> list[dict[str, Any]]:
    content = (run.output / partition / "responses.jsonl").read_bytes()
    return [orjson.loads(line) for line in content.splitlines()]


def _received(run: RunProcess) -> int:
    return sum(each.tokens.received for each in run.partitions())


def _order(run: RunProcess, command: str) -> None:
    run.order(command, "test", "B1_p")


def _running_on(server: RealServer) -> int:
    loads = httpx.get(f"{server.url}/v1/loads", trust_env=False, timeout=30).json()["loads"]
    return sum(load["num_running_reqs"] for load in loads)


def _uninterrupted(server: RealServer, text: str, n: int) -> list[int]:
    """Return what the server answers in one piece, without any checkpoint in between."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as client:
        messages = [{"role": "user", "content": text}]
        prompt = client.post("/tokenize", json={"messages": messages}).json()["tokens"]
        parameters = {"temperature": 0.0, "max_new_tokens": n, "ignore_eos": True}
        reply = client.post("/generate", json={"input_ids": prompt, "sampling_params": parameters})
        ids: list[int] = reply.json()["output_ids"]
        return ids
