"""Cases prg-01 and prg-05 with real processes: the time left after a restart and after a pause."""

import time
from typing import Any

import httpx
import pytest

from app.simulator.server import SimulatorThread
from tests.process.case_run import CaseRun
from tests.process.run_process import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.alone]

SCRIPT = {"@@quick": ["ok with 20 output tokens"], "*": ["ok with 20 output tokens, delay=1"]}


def rows(n_quick: int, n_slow: int) -> list[str]:
    """Return rows of which the first are answered at once, the others after a second."""
    return [f"q{n} @@quick" for n in range(n_quick)] + [f"a{n}" for n in range(n_slow)]


def begun_again(run: CaseRun, n_kept: int) -> float:
    """Wait until the run has kept one more than that; return when."""
    run.wait_kept(n_kept + 1)
    return time.monotonic()


def shown_after(run: CaseRun, begun_at: float, seconds: float) -> dict[str, Any]:
    wait_for(lambda: time.monotonic() >= begun_at + seconds, f"{seconds} s to pass")
    return run.figures()


def test_prg_01_the_time_left_counts_no_rows_of_the_earlier_session(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script(SCRIPT | {"*": ["hang"]})
    run.concurrency = 40
    run.write_spec()
    run.write_rows(rows(900, 100))
    run.start()
    wait_for(lambda: run.kept() >= 900, "the quick rows")
    run.order("stop")
    run.wait()
    n_kept = run.kept()

    simulator.script(SCRIPT)
    run.concurrency = 1
    run.write_spec()
    run.start()
    begun_at = begun_again(run, n_kept)
    early = shown_after(run, begun_at, 1)
    later = shown_after(run, begun_at, 15)

    left = early["time_left_s"]
    assert left is None or left["middle"] > (1000 - n_kept) / 2
    assert left or "estimating" in early["time_left_unknown_because"]
    true_s = 1000 - later["samples"]["kept"]
    assert later["time_left_s"], later["time_left_unknown_because"]
    assert later["time_left_s"]["middle"] == pytest.approx(true_s, rel=0.25)
    assert later["decided_by_partition"] == "B1_p"


def test_prg_05_a_pause_is_no_work_and_outlives_the_service(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script(SCRIPT)
    run.concurrency = 2
    run.write_spec()
    run.write_rows(rows(30, 90))
    run.start()
    run.wait_kept(40)
    run.order("pause")
    wait_for(lambda: simulator.stats.in_flight == 0, "nothing in flight")
    n_kept = run.kept()
    run.kill()
    run.kill_workers()

    run.start()
    wait_for(lambda: run.is_alive() and _is_up(run), "the service")
    n_before = len(simulator.stats.requests())
    paused_at = time.monotonic()
    wait_for(lambda: time.monotonic() > paused_at + 3, "three seconds")
    paused = run.figures()
    assert paused["state"] == "paused"
    assert len(simulator.stats.requests()) == n_before
    assert paused["time_left_s"] is None

    run.order("resume")
    resumed = shown_after(run, begun_again(run, n_kept), 13)
    true_s = (120 - resumed["samples"]["kept"]) / 2
    assert resumed["time_left_s"], resumed["time_left_unknown_because"]
    assert resumed["time_left_s"]["middle"] == pytest.approx(true_s, rel=0.3)


def _is_up(run: CaseRun) -> bool:
    try:
        return bool(run.figures())
    except (AssertionError, httpx.HTTPError):
        return False
