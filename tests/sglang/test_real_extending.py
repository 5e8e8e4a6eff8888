"""Extending on the real server: two pieces of a greedy answer are the answer made in one."""

from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.process.accounts import assert_books_balance
from tests.process.run_process import RunProcess
from tests.sglang.real_server import RealServer

SHORT, LONG = 16, 48
BOUND_S = 600.0


@pytest.mark.parametrize("ignore_eos", [False, True])
def test_answers_cut_at_16_and_extended_to_48_are_those_made_with_48_at_once(
    tmp_path: Path, real_server: RealServer, *, ignore_eos: bool
) -> None:
    run = RunProcess(
        tmp_path,
        real_server.url,
        concurrency=8,
        max_new_tokens=SHORT,
        spec_lines=f"[defaults]\ntemperature = 0.0\nignore_eos = {str(ignore_eos).lower()}\n",
        environment={"LONGWATCH_TICK_S": "0.2"},
    )
    texts = [f"Tell me of the queue number {n}, at length." for n in range(16)]
    run.write_prompts("B1_p", texts)
    try:
        run.start()
        assert run.wait(BOUND_S) == 0, run.log_tail()
        short = _lines(run)
        n_truncated = run.partitions()[0].counts.truncated
        assert n_truncated >= 8

        said = run.order("extend", "test", "B1_p", "--max-new-tokens", str(LONG))
        assert f"{n_truncated} pending again" in said
        run.start()
        assert run.wait(BOUND_S) == 0, run.log_tail()

        assert_books_balance(run)
        lines = _lines(run)
        assert [line["index"] for line in lines] == list(range(16))
        assert sum(len(line["segments"]) == 2 for line in lines) == n_truncated
        for line, old, text in zip(lines, short, texts, strict=True):
            assert line["output_ids"] == _at_once(real_server, text, ignore_eos), line["segments"]
            assert line["prompt_tokens"] == old["prompt_tokens"]
        # without a known end id the last token of each is made anew, and it is the same one
        assert run.partitions()[0].tokens.wasted <= n_truncated
    finally:
        run.close()


def _lines(run: RunProcess) -> list[dict[str, Any]]:
    content = (run.output / "B1_p" / "responses.jsonl").read_bytes()
    return [orjson.loads(line) for line in content.splitlines()]


def _at_once(server: RealServer, text: str, ignore_eos: bool) -> list[int]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as client:
        messages = [{"role": "user", "content": text}]
        prompt = client.post("/tokenize", json={"messages": messages}).json()["tokens"]
        parameters = {"temperature": 0.0, "max_new_tokens": LONG, "ignore_eos": ignore_eos}
        reply = client.post("/generate", json={"input_ids": prompt, "sampling_params": parameters})
        ids: list[int] = reply.json()["output_ids"]
        return ids
