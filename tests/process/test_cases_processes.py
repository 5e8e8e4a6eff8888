"""Cases led-04 and prc-01 to prc-04 with real processes: two services, signals, deaths, logs."""

import os
import pty
import re
import signal
import socket
import subprocess
import time

import pytest

from app.simulator.server import SimulatorThread
from tests.cases.settings import calls
from tests.process.accounts import assert_books_balance
from tests.process.case_run import PARTITION, SHORT_TICK, CaseRun
from tests.process.run_process import ROOT, is_worker, wait_for


@pytest.mark.slow
def test_led_04_a_second_service_is_refused_and_a_killed_one_leaves_no_obstacle(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """A second `run` would submit to the first, so it is `serve`. Held rows keep the first busy."""
    rows = [f"a{n}" if n % 4 else f"a{n} @@held" for n in range(16)]
    simulator.script({"@@held": ["ok delay=3600", "ok"], "*": ["ok"]})
    run.write_rows(rows)
    run.start()
    run.wait_kept(4)
    assert run.process is not None
    pid = run.process.pid

    second = run.ask("serve", "--port", "0")

    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
    who = re.escape(f"is in use by process {pid} on {socket.gethostname()} since ")
    assert re.search(rf"{who}20\d\d-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d at http://", second.stderr)
    run.kill()
    assert run.to_the_end() == 0, run.log_tail()
    run.assert_whole(rows)
    assert_books_balance(run)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_prc_01_a_signal_waits_for_what_runs_within_the_grace_time(
    run: CaseRun, simulator: SimulatorThread, number: signal.Signals
) -> None:
    """Scaled: an answer takes 0.8 s. By design the exit code of a run that was stopped is 3."""
    rows = [f"a{n}" for n in range(40)]
    simulator.set(delay_scale=0.2)
    simulator.script({"*": ["ok delay=4"]})
    run.run_lines = "stop_grace_s = 10"
    run.write_spec()
    run.write_rows(rows)
    run.start()
    wait_for(lambda: run.kept() >= 8 and simulator.stats.in_flight == 8, "the second eight")

    run.signal(number)

    assert run.wait(10) == 3, run.log_tail()
    assert simulator.stats.in_flight == 0
    assert simulator.stats.aborts == simulator.stats.disconnects == 0
    assert set(run.states().values()) == {"ok", "pending"}
    assert run.worker_pids() == []
    assert run.to_the_end() == 0, run.log_tail()
    assert simulator.stats.calls_total == 40
    run.assert_whole(rows)


@pytest.mark.slow
def test_prc_01_a_second_signal_does_not_wait(run: CaseRun, simulator: SimulatorThread) -> None:
    """The grace time and the answers are longer than the test waits for the end."""
    rows = [f"a{n}" if n < 8 else f"a{n} @@held" for n in range(16)]
    simulator.script({"@@held": ["ok delay=3600", "ok"], "*": ["ok"]})
    run.run_lines = "stop_grace_s = 3600"
    run.write_spec()
    run.write_rows(rows)
    run.start()
    wait_for(lambda: run.kept() == 8 and simulator.stats.in_flight == 8, "eight in flight")
    pids = run.worker_pids()

    run.signal(signal.SIGINT)
    wait_for(lambda: "SIGINT: stopping" in run.log(), "the first signal to be heard")
    time.sleep(0.5)  # as the case has it
    run.signal(signal.SIGINT)

    assert run.wait(10) == 3, run.log_tail()
    assert not any(is_worker(pid) for pid in pids)
    assert "running" not in run.states().values()
    assert simulator.stats.in_flight == 0
    assert run.to_the_end() == 0, run.log_tail()
    assert simulator.stats.calls_total <= 16 + 8
    run.assert_whole(rows)
    assert_books_balance(run)


def twenty_slow_rows(run: CaseRun, simulator: SimulatorThread) -> list[str]:
    rows = [f"a{n}" for n in range(20)]
    simulator.set(delay_scale=0.3)
    simulator.script({"*": ["ok delay=1"]})
    run.concurrency = 4
    run.write_spec()
    run.write_rows(rows)
    return rows


@pytest.mark.slow
def test_prc_02_under_nohup_a_closed_terminal_does_not_matter(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """A real terminal: its master end is closed, and the whole group gets SIGHUP besides."""
    rows = twenty_slow_rows(run, simulator)
    ours, theirs = pty.openpty()
    run.wrapper = ("setsid", "--ctty", "nohup")
    run.environment = {**SHORT_TICK, "PYTHONPATH": str(ROOT)}
    # nohup writes its nohup.out where it is started
    run.start(stdin=theirs, stdout=theirs, stderr=theirs, cwd=run.folder)
    os.close(theirs)
    try:
        run.wait_kept(2)
        assert run.process is not None
        os.killpg(run.process.pid, signal.SIGHUP)
    finally:
        os.close(ours)

    assert run.wait(30) == 0
    run.assert_whole(rows)
    assert "SIGHUP" not in run.log(), "an ignored SIGHUP is heard"


@pytest.mark.slow
def test_prc_02_without_nohup_and_without_a_reader_it_goes_on_and_notes_it(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """A held row keeps the run alive until its log says that the signal came."""
    rows = [*(f"a{n}" for n in range(8)), "a8 @@held"]
    simulator.script({"@@held": ["ok delay=3600", "ok"], "*": ["ok"]})
    run.write_rows(rows)
    reading, writing = os.pipe()
    os.close(reading)
    # Whoever runs the tests may ignore the signal (nohup), and children would inherit that.
    run.wrapper = ("env", "--default-signal=HUP", "setsid")
    run.start(stdin=subprocess.DEVNULL, stdout=writing, stderr=writing)
    os.close(writing)
    run.wait_kept(8)
    assert run.process is not None

    os.killpg(run.process.pid, signal.SIGHUP)

    said = "SIGHUP: the terminal is gone, the run goes on"
    wait_for(lambda: said in run.log(), "the note of the signal")
    run.order("pause", "test")
    run.order("resume", "test")
    assert run.wait(30) == 0
    run.assert_whole(rows)


@pytest.mark.slow
def test_prc_03_workers_end_with_their_service(run: CaseRun, simulator: SimulatorThread) -> None:
    """Scaled: an answer takes 0.5 s. The next start comes at once, while they are still leaving."""
    rows = [f"a{n}" for n in range(60)]
    simulator.set(delay_scale=0.25)
    simulator.script({"*": ["ok delay=2"]})
    run.write_rows(rows)
    run.start()
    run.wait_kept(8)
    old = run.worker_pids()
    assert old

    run.kill()
    run.start()

    wait_for(lambda: not any(is_worker(pid) for pid in old), "the old workers to end", 5)
    assert run.wait(30) == 0, run.log_tail()
    run.assert_whole(rows)
    assert_books_balance(run)
    assert simulator.stats.duplicate_rids == 0
    assert max(calls(simulator).values()) <= 2


@pytest.mark.slow
def test_a_worker_that_dies_stands_in_the_activity(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script({"@@held": ["ok delay=3600", "ok"], "*": ["ok"]})
    run.write_rows(["a", "b @@held"])
    run.start()
    run.wait_kept(1)
    wait_for(lambda: simulator.stats.in_flight == 1, "the held one")
    (pid,) = run.worker_pids()

    os.kill(pid, signal.SIGKILL)

    assert run.wait() == 0, run.log_tail()
    (lost,) = [each for each in run.deeds() if each.event == "worker lost"]
    assert lost.who == "system"
    assert lost.detail == f"{PARTITION}: killed by SIGKILL; 1 request put back, to go on"


@pytest.mark.slow
def test_prc_04_a_repeated_error_is_told_once_with_its_count(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """Scaled: 1,000 rows under a cap of 1 MB; a line for each error would take a worker's share."""
    n_rows, cap_bytes = 1_000, 1_000_000
    simulator.script({"*": [{"json": [500, {"detail": "boom"}]}]})
    run.environment = {**SHORT_TICK, "LONGWATCH_LOG_CAP_MB": "1"}
    run.run_lines = "max_attempts = 2"
    run.concurrency = 128
    run.write_spec()
    run.write_rows([f"a{n} confidential" for n in range(n_rows)])

    assert run.to_the_end() == 2, run.log_tail()

    assert run.partitions()[0].counts.failed == n_rows
    assert simulator.stats.calls_total == 2 * n_rows
    logs = [path for path in (run.home / "logs").iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in logs) < cap_bytes
    told = [line for line in run.log().splitlines() if "boom" in line]
    assert len(told) < 20
    # two kinds: tried again, and given up
    assert [f"… {n_rows - 1} more like this" in line for line in told[-2:]] == [True, True]
    assert "confidential" not in run.log()
    failed = (run.output / PARTITION / "failed.jsonl").read_bytes()
    assert failed.count(b"\n") == n_rows
