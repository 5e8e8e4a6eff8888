"""`longwatch merge` as it is started: killed in the middle, it goes on to the same bytes."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from app.simulator.server import SimulatorThread
from tests.export.conftest import written
from tests.process.case_run import CaseRun
from tests.process.run_process import ROOT, wait_for

N_SAMPLES = 4_000
WORDS = ("--shard-tokens", "40k", "--parquet", "--conversations")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[CaseRun]:
    with SimulatorThread(port=0) as simulator:
        simulator.script({"*": ["ok with 60 output tokens"]})
        run = CaseRun(tmp_path, simulator.url, concurrency=64)
        run.write_rows([f"r{n}" for n in range(N_SAMPLES)])
        assert run.to_the_end() == 0, run.log_tail()
        yield run
        run.close()


@pytest.mark.slow
def test_a_merge_killed_at_any_instant_goes_on_to_the_same_bytes(run: CaseRun) -> None:
    whole, broken = run.folder / "whole", run.folder / "broken"
    told = run.ask("merge", "1", "--out", str(whole), *WORDS)
    assert told.returncode == 0, told.stderr
    assert f"{N_SAMPLES:,} of {N_SAMPLES:,} samples" in told.stdout
    expected = written(whole)
    said = orjson.loads(expected["conversations/train-00000.jsonl"].splitlines()[0])
    assert said["id"] == "B1_p/r0"
    assert [each["role"] for each in said["conversations"]] == ["user", "assistant"]
    assert said["conversations"][0]["content"] == "r0"
    lines = [lines.count(b"\n") for name, lines in expected.items() if name.endswith(".jsonl")]
    assert sum(lines) == 2 * N_SAMPLES
    n_shards = sum(name.startswith("data/") for name in expected)
    assert n_shards > 5

    command = [sys.executable, "-m", "app", "merge", "1", "--out", str(broken), *WORDS]
    for n_done in (1, n_shards // 2, n_shards - 1):
        process = subprocess.Popen([*command, "--home", str(run.home)], cwd=ROOT)
        wait_for(
            lambda n=n_done: (  # type: ignore[misc]  # bound now
                len(list((broken / "data").glob("train-*.jsonl"))) >= n
            ),
            f"{n_done} shards",
        )
        process.send_signal(signal.SIGKILL)
        process.wait()

    told = run.ask("merge", "1", "--out", str(broken), *WORDS)

    assert told.returncode == 0, told.stderr
    assert written(broken) == expected
