"""An earlier script's output taken over between two starts of a run of real processes.

B1 was complete and B2 had 1,374 of 2,000: the run goes on at the next, and all stands there once,
id by id what the simulated model says. A kill -9 in the midst of the order changes nothing of that.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import pytest

from app.files.tokens import token_path
from app.ledger import measures, runs
from app.seams import Seam
from app.simulator.answers import LengthModel, answer
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import encode_chat
from tests.process.accounts import (
    assert_answers_are_right,
    assert_books_balance,
    assert_each_measured_once,
    assert_exactly_once,
)
from tests.process.run_process import ROOT, RunProcess, wait_for
from tests.process.serving import serving
from tests.stage import random_texts

LENGTHS = LengthModel(mean_tokens=25, cap_tokens=60)
LIMIT = 60
DONE, HALF = "B1_done", "B2_half"
N_DONE, N_HALF, N_MADE = 300, 2_000, 1_374


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(lengths=LENGTHS, time_factor=5, max_running=64) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, simulator: SimulatorThread) -> Iterator[RunProcess]:
    run = RunProcess(
        tmp_path, simulator.url, concurrency=32, max_new_tokens=LIMIT,
        environment={"LONGWATCH_TICK_S": "0.1", "LONGWATCH_SNAPSHOT_S": "0.5"},
    )  # fmt: skip
    yield run
    run.close()


def texts_of(partition: str) -> list[str]:
    n = N_DONE if partition == DONE else N_HALF
    return random_texts(n, seed=len(partition) + n)


def whole(text: str) -> list[int]:
    return list(answer(encode_chat([{"role": "user", "content": text}]), LENGTHS, LIMIT))


def write_earlier(folder: Path, partition: str, n: int, tail: bytes = b"") -> None:
    lines = []
    for number, text in enumerate(texts_of(partition)[:n]):
        ids = whole(text)
        reason = "length" if len(ids) == LIMIT else "stop"
        line = {"id": f"r{number}", "output_ids": ids, "finish_reason": reason, "prompt": text}
        lines.append(orjson.dumps(line) + b"\n")
    (folder / partition).mkdir(parents=True)
    (folder / partition / "raw_responses.jsonl").write_bytes(b"".join(lines) + tail)


def begin_and_stop(run: RunProcess) -> int:
    """Start the run, stop it once its prompts are ready; return how many answers it has made."""
    for partition in (DONE, HALF):
        run.write_prompts(partition, texts_of(partition))
    run.start()
    wait_for(
        lambda: (found := run.partitions()) and all(each.intake == "tokenized" for each in found),
        "the prompts to be ready",
    )
    run.signal(signal.SIGTERM)
    run.wait()
    wait_for(lambda: not run.worker_pids(), "workers to leave")
    return run.kept()


def adopt(run: RunProcess, *words: str, environment: Mapping[str, str] | None = None) -> int:
    command = [sys.executable, "-m", "app", "adopt", "test", str(run.folder / "old"), *words]
    with (run.folder / "run.log").open("ab") as log:
        return subprocess.run(
            [*command, "--home", str(run.home)],
            check=False, cwd=ROOT, stdout=log, stderr=log, timeout=100,
            env={**os.environ, **(environment or {})},
        ).returncode  # fmt: skip


def assert_goes_on_behind_it(run: RunProcess, simulator: SimulatorThread, n_before: int) -> None:
    """End the run: only what nobody had made is generated, and each stands there once."""
    assert run.kept() >= N_DONE + N_MADE
    left = N_DONE + N_HALF - run.kept()
    assert left > 0
    adopted = adopted_tokens(run)
    run.start()
    assert run.wait() == 0, run.log_tail()
    flags: list[list[str]] = []
    for partition in (DONE, HALF):
        texts = texts_of(partition)
        lines = assert_exactly_once(run, partition, texts)
        assert_answers_are_right(lines, texts, LENGTHS, LIMIT)
        flags += [list(map(str, line["flags"])) for line in lines]  # type: ignore[call-overload]  # a list
    n_adopted = sum("adopted" in each for each in flags)
    assert N_DONE + N_MADE - n_before <= n_adopted <= N_DONE + N_MADE
    assert not any("adopted" in each for each in flags[N_DONE + N_MADE :])
    assert adopted == adopted_tokens(run) > 0
    received = sum(each.tokens.received for each in run.partitions())
    assert received - adopted <= simulator.stats.generated_tokens
    assert_no_speed_of_it(run, received - adopted)
    assert_books_balance(run)
    assert_each_measured_once(run)


def assert_no_speed_of_it(run: RunProcess, n_tokens: int) -> None:
    """Neither chart nor report shows more than what workers received."""
    report = json.loads(run.order("report", "test", "--json"))
    assert report["mean_tokens_per_s"] * report["active_s"] == pytest.approx(n_tokens)
    with serving(run) as client:
        chart = client.get("/runs/test/chart?buckets=100").json()
    speeds = [each for each in chart["own_tokens_per_s"] if each is not None]
    assert 0 < sum(speeds) * chart["bucket_s"] <= 1.1 * n_tokens


def adopted_tokens(run: RunProcess) -> int:
    view = run.run_view()
    assert view is not None
    with run.ledger() as ledger:
        return sum(
            measures.adopted_tokens(ledger, each.id) for each in runs.partitions_of(ledger, view.id)
        )


@pytest.mark.slow
def test_b1_complete_and_b2_with_1374_goes_on_at_1375(
    run: RunProcess, simulator: SimulatorThread
) -> None:
    n_before = begin_and_stop(run)
    write_earlier(run.folder / "old", DONE, N_DONE)
    write_earlier(run.folder / "old", HALF, N_MADE, tail=b'{"id": "r1374", "output_ids": [5, 6')
    view = run.run_view()
    assert view is not None
    assert token_path(run.home, view.id, HALF).exists()

    assert adopt(run, "--check") == 0
    assert run.kept() == n_before
    assert adopt(run) == 1  # nobody is there to be asked
    assert run.kept() == n_before
    assert adopt(run, "--yes") == 0, run.log_tail()

    assert "1 line torn at the end of the file, left" in run.printed()
    done, half = run.partitions()
    assert (done.counts.pending, done.tokens.held) == (0, 0)
    assert half.counts.pending <= N_HALF - N_MADE
    kept = run.kept()
    assert adopt(run, "--yes") == 0
    assert run.kept() == kept
    assert_goes_on_behind_it(run, simulator, n_before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "die_at",
    [
        f"{Seam.SHARD_WRITTEN}:1",
        f"{Seam.SHARD_SYNCED}:2",
        f"{Seam.ADOPT_BEFORE_COMMIT}:1",
        f"{Seam.ADOPT_BEFORE_COMMIT}:3",
        f"{Seam.ADOPT_COMMITTED}:2",
    ],
)
def test_killed_in_the_midst_and_given_again_nothing_stands_twice(
    run: RunProcess, simulator: SimulatorThread, die_at: str
) -> None:
    n_before = begin_and_stop(run)
    write_earlier(run.folder / "old", DONE, N_DONE)
    write_earlier(run.folder / "old", HALF, N_MADE)

    code = adopt(run, "--yes", environment={"LONGWATCH_DIE_AT": die_at})

    assert code == -signal.SIGKILL, run.log_tail()
    assert run.kept() < N_DONE + N_MADE
    assert adopt(run, "--yes") == 0, run.log_tail()
    assert_goes_on_behind_it(run, simulator, n_before)


@pytest.mark.slow
def test_killed_and_never_given_again_the_run_makes_the_rest_itself(
    run: RunProcess, simulator: SimulatorThread
) -> None:
    begin_and_stop(run)
    write_earlier(run.folder / "old", HALF, N_MADE)
    environment = {"LONGWATCH_DIE_AT": f"{Seam.ADOPT_BEFORE_COMMIT}:2"}
    assert adopt(run, "--yes", environment=environment) == -signal.SIGKILL
    run.start()
    assert run.wait() == 0, run.log_tail()
    for partition in (DONE, HALF):
        assert_answers_are_right(
            assert_exactly_once(run, partition, texts_of(partition)),
            texts_of(partition), LENGTHS, LIMIT,
        )  # fmt: skip
    assert_books_balance(run)
    assert_each_measured_once(run)
