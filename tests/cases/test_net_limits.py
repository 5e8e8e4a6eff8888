"""Cases net-04 and net-05: what the machine has little of, files and memory."""

import gc
import json
import os
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest

from app.files.tokens import TokenFile
from app.ledger import intake_rows
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import encode_chat
from tests.stage import Stage

ROOT = Path(__file__).parents[2]


def work_with_few_files(folder: Path, url: str, limit: str, n_rows: int = 1_500) -> dict[str, Any]:
    command = f'ulimit {limit} 256 && exec "$0" -m tests.cases.few_files "$@"'
    ended = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(folder), url, str(n_rows), "512"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    assert ended.stderr == ""
    seen: dict[str, Any] = json.loads(ended.stdout)
    return seen


async def test_net_04_too_many_open_files_or_no_free_local_port(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """Scaled to 1,500 rows. `ulimit -n` lowers the hard limit too: the worker must use less."""
    simulator.script({"*": ["ok delay=0.2"]})

    seen = work_with_few_files(tmp_path, simulator.url, "-n")

    assert (seen["ok"], seen["attempts"], seen["soft_limit"]) == (1_500, 1, 256)
    (notice,) = seen["notices"]
    assert "512" in notice
    assert str(simulator.stats.max_in_flight) in notice  # the effective concurrency
    assert "256" in notice
    assert 150 <= simulator.stats.max_in_flight < 256
    assert simulator.stats.tcp_accepts <= 360  # 1,200 for the 5,000 rows of the case


async def test_net_04_raises_the_soft_limit_where_it_may(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["ok delay=3"]})  # long enough that 512 meet on a busy machine too

    seen = work_with_few_files(tmp_path, simulator.url, "-S -n", 600)

    assert (seen["ok"], seen["attempts"], seen["notices"]) == (600, 1, [])
    assert seen["soft_limit"] > 512
    assert simulator.stats.max_in_flight == 512


N_ROWS = 20_000
ENOUGH = 1_500
FILLER_TOKENS = 2_000
# All prompts at once would be 160 MB packed; the bound leaves room for what one process needs.
GROWTH_BOUND_BYTES = 60_000_000


def fill_with_many(stage: Stage) -> None:
    """Add rows of 2 kB, of which the first is slow, without holding them in memory."""
    filler = array("I", encode_chat([{"role": "user", "content": "x" * FILLER_TOKENS}]))
    stage.fill_rows(["row0 @@slow"])
    rows = [(n, n, 0, f"row{n}", "pending", "-", None, None, None) for n in range(1, N_ROWS)]
    intake_rows.insert_many(stage.ledger, stage.partition_id, rows)
    tokens = TokenFile(stage.token_path)
    while True:
        last = stage.partition().n_tokenized - 1
        batch = intake_rows.untokenized(stage.ledger, stage.partition_id, last, 1_000)
        if not batch:
            break
        offsets = tokens.append([filler] * len(batch))
        done = [
            intake_rows.Tokenized(
                sample_id=row.sample_id, prompt_tokens=len(filler), token_offset=offset
            )
            for row, offset in zip(batch, offsets, strict=True)
        ]
        size = tokens.size_tokens
        intake_rows.record_tokens(stage.ledger, stage.partition_id, done, [], size)
    tokens.close()
    intake_rows.all_tokenized(stage.ledger, stage.partition_id)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
async def test_net_05_memory_grows_with_the_number_of_rows_not_with_concurrency(
    tmp_path: Path,
) -> None:
    """Scaled to 20,000 rows. The slow first row is also the trial, which is the harder case."""
    with SimulatorThread(port=0, log_requests=False, count_rows=False) as simulator:
        simulator.script({"@@slow": ["hang"], "*": ["ok"]})
        stage = Stage(tmp_path, simulator.url, concurrency=64)
        fill_with_many(stage)
        gc.collect()
        before = resident_bytes()

        async with stage.shift() as shift:
            await shift.until(lambda: stage.partition().counts.ok >= ENOUGH, "many answers")
            growth = resident_bytes() - before
            on_disk = {line["id"] for line in stage.lines()}
            assert stage.states()["row0"] == "running"

        assert growth < GROWTH_BOUND_BYTES
        assert len(on_disk) >= ENOUGH
        assert "row0" not in on_disk
        stage.token_path.unlink()
