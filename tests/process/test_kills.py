"""kill -9 at random instants (seeded) of a run with long answers: nothing lost, nothing doubled.

The short form runs in script/test, the full one (400 samples, 20 kills of each kind) behind it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from app.simulator.answers import LengthModel
from tests.process.accounts import (
    assert_answers_are_right,
    assert_books_balance,
    assert_each_measured_once,
    assert_exactly_once,
)
from tests.process.run_process import RunProcess, SimulatorProcess, wait_for
from tests.stage import random_texts

LENGTHS = LengthModel(mean_tokens=2_000, cap_tokens=8_000)
CAP = 8_000
TICK_S = 0.5
SIMULATOR = (
    *("--incremental", "--no-log-requests"),
    *("--mean-tokens", str(LENGTHS.mean_tokens), "--cap-tokens", str(LENGTHS.cap_tokens)),
)
N_SAMPLES, N_KILLS = 400, 20


class Meter:
    """What the simulator has delivered, over time: the bound for what a kill may cost."""

    def __init__(self, simulator: SimulatorProcess) -> None:
        self._simulator = simulator
        self._seen: list[tuple[float, int]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.05):
            now = time.monotonic()
            self._seen.append((now, self._simulator.counters()["delivered_tokens"]))

    @contextmanager
    def reading(self) -> Iterator["Meter"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()

    def between(self, begin_s: float, end_s: float) -> int:
        """Return how many tokens were delivered in that span, rounded outwards to the looks."""
        before = [n for at, n in self._seen if at <= begin_s]
        after = [n for at, n in self._seen if at >= end_s]
        return (after[0] if after else self._seen[-1][1]) - (before[-1] if before else 0)


def wait_for_more(run: RunProcess) -> None:
    """Wait until more tokens are recorded than now."""
    before = sum(each.tokens.received for each in run.partitions())
    wait_for(lambda: sum(each.tokens.received for each in run.partitions()) > before, "more tokens")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("victim", ["worker", "parent", "both"])
def test_kill_9_of_our_processes(tmp_path: Path, victim: str) -> None:
    random = Random(f"{victim} {N_KILLS}")
    texts = random_texts(N_SAMPLES, seed=N_KILLS)
    # A worker is back within a second: the work must be slow enough to last for all its kills.
    simulator = SimulatorProcess(
        (*SIMULATOR, "--time-factor", "12" if victim == "worker" else "30")
    )
    simulator.start()
    run = RunProcess(tmp_path, simulator.url, max_new_tokens=CAP)
    run.write_prompts("B1_p", texts)
    killed_at: list[float] = []
    try:
        with Meter(simulator).reading() as meter:
            run.start()
            wait_for(run.worker_pids, "the first worker")
            for _ in range(N_KILLS):
                if victim == "worker":
                    # Five deaths in a row without a token are a crash loop, and stop the run.
                    wait_for_more(run)
                time.sleep(random.uniform(0.1, 2.5))  # the instant is the test's input
                # the worker first: once its parent has gone, it leaves by itself
                if victim != "parent":
                    wait_for(run.kill_workers, "a worker to kill")
                if victim != "worker":
                    assert run.is_alive()
                    run.kill()
                killed_at.append(time.monotonic())
                if victim != "worker":
                    run.start()
            assert run.wait() == 0, run.log_tail()
            delivered = simulator.counters()["delivered_tokens"]
        lines = assert_exactly_once(run, "B1_p", texts)
        assert_answers_are_right(lines, texts, LENGTHS, CAP)
        assert_books_balance(run)
        assert_each_measured_once(run)
        (partition,) = run.partitions()
        assert partition.tokens.wasted == 0
        # Received and generated again: at most what the last 1.5 ticks before each kill brought.
        # A parent's death costs nothing: its workers save what they have.
        again = delivered - partition.tokens.kept
        may_cost = killed_at if victim != "parent" else []
        assert again <= sum(meter.between(at - 1.5 * TICK_S, at) for at in may_cost) + 64
        assert again >= 0
    finally:
        run.close()
        simulator.kill()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kill_9_of_the_simulator(tmp_path: Path) -> None:
    random = Random(N_KILLS)
    texts = random_texts(N_SAMPLES, seed=N_KILLS)
    simulator = SimulatorProcess((*SIMULATOR, "--time-factor", "30"))
    simulator.start()
    run = RunProcess(tmp_path, simulator.url, max_new_tokens=CAP)
    run.write_prompts("B1_p", texts)
    try:
        run.start()
        wait_for(lambda: run.partitions() and run.partitions()[0].tokens.received, "first tokens")
        for _ in range(N_KILLS):
            wait_for_more(run)
            time.sleep(random.uniform(0.0, 1.5))  # the instant is the test's input
            assert not run.is_finished(), "the work did not last for all kills"
            simulator.kill()
            simulator.start()
        assert run.wait() == 0, run.log_tail()
        lines = assert_exactly_once(run, "B1_p", texts)
        assert_answers_are_right(lines, texts, LENGTHS, CAP)
        assert_books_balance(run)
        assert_each_measured_once(run)
        (partition,) = run.partitions()
        # Nothing that was received was generated again.
        assert partition.tokens.wasted == 0
        assert partition.tokens.received == partition.tokens.kept
        assert partition.counts.failed == 0
    finally:
        run.close()
        simulator.kill()
