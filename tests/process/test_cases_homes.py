"""Several runs in one home, one service: one after the other, side by side, in sequence."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from app.core.states import RunState
from app.simulator.server import SimulatorThread
from tests.cases.settings import calls
from tests.process.case_run import PARTITION, CaseRun
from tests.process.run_process import ROOT, wait_for


def second_of(run: CaseRun) -> CaseRun:
    """Return another run of the same home: other name, prompts and output."""
    folder = run.folder / "second"
    folder.mkdir()
    other = CaseRun(folder, run.server_url)
    other.home = run.home
    other.spec.write_text(other.spec.read_text().replace('name = "test"', 'name = "second"'))
    return other


def answered(run: CaseRun) -> list[str]:
    return [str(line["id"]) for line in run.lines()]


def states_of_runs(run: CaseRun) -> dict[str, str]:
    with contextlib.closing(sqlite3.connect(run.home / "ledger.db")) as connection:
        return dict(connection.execute("SELECT name, state FROM run").fetchall())


@pytest.mark.slow
def test_two_runs_one_after_the_other_in_one_home(run: CaseRun, simulator: SimulatorThread) -> None:
    simulator.script({"*": ["ok"]})
    run.write_rows(["a0", "a1"])
    assert run.to_the_end() == 0, run.log_tail()
    other = second_of(run)
    other.write_rows(["b0", "b1", "b2"])
    try:
        assert other.to_the_end() == 0, other.log_tail()
    finally:
        other.close()

    assert (answered(run), answered(other)) == (["a0", "a1"], ["b0", "b1", "b2"])
    assert states_of_runs(run) == {"test": "finished", "second": "finished"}
    assert calls(simulator) == dict.fromkeys(("a0", "a1", "b0", "b1", "b2"), 1)


@pytest.mark.slow
def test_a_second_run_is_given_to_the_living_service_and_followed(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """The follower's exit code is its own run's, and its Ctrl-C would end nothing."""
    simulator.script(
        {"@@held": ["ok delay=3600", "ok"], "@@bad": [{"json": [400, {}]}], "*": ["ok"]}
    )
    run.write_rows(["a0", "a1 @@held"])
    run.start()
    run.wait_kept(1)
    assert run.process is not None
    other = second_of(run)
    other.write_rows(["b0", "b1 @@bad", "b2"])
    try:
        assert other.to_the_end() == 2, other.log_tail()
        assert "the run is given to it" in other.log_tail()
        assert "Finished with 1 failed sample" in other.log_tail()
        assert answered(other) == ["b0", "b2"]
        assert run.process.poll() is None

        other.spec.write_text(other.spec.read_text().replace('"second"', '"third"'))
        refused = other.ask("run", str(other.spec))
        assert refused.returncode == 1
        assert f'already holds {PARTITION} of run 2 "second"' in refused.stderr
        assert states_of_runs(run) == {"test": "running", "second": "finished"}

        run.order("pause", "test")
        wait_for(lambda: simulator.stats.in_flight == 0, "nothing in flight")
        run.order("resume", "test")
        assert run.wait(30) == 0, run.log_tail()
    finally:
        other.close()
    assert answered(run) == ["a0", "a1"]
    assert calls(simulator) == {"a0": 1, "a1": 2, "b0": 1, "b1": 1, "b2": 1}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.slow
def test_a_follower_goes_on_by_itself_when_the_service_leaves(
    run: CaseRun, simulator: SimulatorThread, how: signal.Signals
) -> None:
    simulator.script({"@@held": ["ok delay=3600", "ok"], "*": ["ok"]})
    run.write_rows(["a0", "a1 @@held"])
    run.start()
    run.wait_kept(1)
    other = second_of(run)
    other.write_rows(["b0", "b1 @@held"])
    try:
        other.start()
        wait_for(lambda: "b1 @@held" in simulator.stats.calls, "the second run in flight")
        run.signal(how)
        assert run.wait(30) == (3 if how is signal.SIGTERM else -how)
        assert other.wait(30) == 0, other.log_tail()
        assert "it goes on here" in other.log_tail()
    finally:
        other.close()
    assert answered(other) == ["b0", "b1"]
    assert calls(simulator)["b1"] == 2


@pytest.mark.slow
def test_a_service_stays_for_the_runs_that_others_gave_it(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script({"@@held": ["ok delay=3600", "ok"], "*": ["ok"]})
    run.write_rows(["a0", "a1 @@held"])
    run.start()
    run.wait_kept(1)
    other = second_of(run)
    other.write_rows(["b0", "b1 @@held"])
    try:
        other.start()
        wait_for(lambda: "b1 @@held" in simulator.stats.calls, "the second run in flight")
        for name in ("test", "second"):  # pause and resume send the held row again
            run.order("pause", name)
            run.order("resume", name)
            if name == "test":
                wait_for(lambda: "Still serving second" in run.log_tail(), "its own run's end")
        assert other.wait(30) == 0, other.log_tail()
        assert run.wait(30) == 0, run.log_tail()
    finally:
        other.close()
    assert "it goes on here" not in other.log_tail()
    assert answered(run) == ["a0", "a1"]
    assert answered(other) == ["b0", "b1"]


@pytest.mark.slow
def test_the_ledgers_locks_survive_whatever_the_service_does(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """A process that closes any descriptor of a file loses all its POSIX locks on it.

    If the service opened the ledger by itself and closed it (a check of its rights does), the
    next stranger to close the ledger would be the last in SQLite's eyes and delete the log under
    the service. No worker lives here, whose own locks would hide that.
    """
    simulator.script({"*": ["ok"]})
    run.write_rows(["a0"])
    assert run.to_the_end() == 0, run.log_tail()
    service = subprocess.Popen(
        [sys.executable, "-m", "app", "serve", "--home", str(run.home), "--port", "0"],
        cwd=ROOT,
        env={**os.environ, **run.environment},
        stdout=subprocess.PIPE,
    )
    try:
        assert service.stdout is not None
        assert b"Longwatch serves" in service.stdout.readline()
        assert run.to_the_end() == 0, run.log_tail()  # submits, with a check of everything
        assert "given to it" in run.log_tail()
        run.order("budget", "test", PARTITION, "3M")
        log = run.home / "ledger.db-wal"
        assert log.stat().st_size > 0
        inode = log.stat().st_ino

        stranger = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM run')"
        subprocess.run(
            [sys.executable, "-c", stranger, str(run.home / "ledger.db")], check=True, timeout=30
        )

        assert log.exists(), "the service has lost its locks on the ledger"
        assert log.stat().st_ino == inode
        run.order("budget", "test", PARTITION, "4M")
        assert run.partitions()[0].token_budget == 4_000_000
    finally:
        service.terminate()
        service.communicate(timeout=30)
    assert service.returncode == 0
    view = run.run_view()
    assert view is not None
    assert view.state is RunState.FINISHED


@pytest.mark.slow
def test_in_sequence_a_partition_begins_when_the_one_before_is_over(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """Of each class one at a time; the other class does not wait."""
    simulator.script({"*": ["ok delay=0.2"]})
    run.concurrency = 4
    run.run_lines = 'order = "sequence"'
    run.write_spec()
    run.write_rows([f"a{n}" for n in range(10)])
    run.write_rows([f"b{n}" for n in range(10)], "B3_q")
    run.write_rows([f"c{n}" for n in range(10)], "B2_long")

    assert run.to_the_end() == 0, run.log_tail()

    spans = {}
    for letter in "abc":
        entries = [each for each in simulator.stats.requests() if each.row[0] == letter]
        assert len(entries) == 10
        ends = [each.ended_at for each in entries if each.ended_at is not None]
        spans[letter] = (min(each.received_at for each in entries), max(ends))
    assert spans["a"][1] <= spans["b"][0]
    assert spans["c"][0] < spans["a"][1]
