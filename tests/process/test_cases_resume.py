"""Cases res-01 to res-04 with real processes: leave, die, and go on with what is left."""

import json
from pathlib import Path

import pytest

from app.core.states import RunState
from app.simulator.server import SimulatorThread
from tests.cases.settings import calls
from tests.process.accounts import assert_books_balance
from tests.process.case_run import PARTITION, CaseRun, calls_since
from tests.process.run_process import wait_for

HELD = {"@@held": ["ok delay=3600", "ok"], "*": ["ok"]}


def stop_with_three(run: CaseRun, rows: list[str]) -> None:
    """Run until three rows are done and the others in flight, then stop in order."""
    run.write_rows(rows)
    run.start()
    run.wait_kept(3)
    run.order("stop")
    assert run.wait() == 3, run.log_tail()
    assert run.kept() == 3


@pytest.mark.parametrize("victim", [pytest.param("service", marks=pytest.mark.slow), "everything"])
def test_res_01_killed_with_the_slow_rows_in_flight(
    run: CaseRun, simulator: SimulatorThread, victim: str
) -> None:
    """A quick row stands first: a run's first request is judged before the others are sent."""
    rows = ["a9", *(f"a{n} @@held" for n in range(5)), *(f"a{n}" for n in range(5, 9))]
    simulator.script(HELD)
    run.concurrency = 10
    run.write_spec()
    run.write_rows(rows)

    run.start()
    run.wait_kept(5)
    wait_for(lambda: simulator.stats.in_flight == 5, "the slow rows in flight")
    run.kill()
    if victim == "everything":
        run.kill_workers()
    assert run.to_the_end() == 0, run.log_tail()

    assert calls(simulator) == {f"a{n}": 2 if n < 5 else 1 for n in range(10)}
    run.assert_whole(rows)
    assert_books_balance(run)


@pytest.mark.slow
def test_res_02_killed_in_the_middle_of_a_line(run: CaseRun, simulator: SimulatorThread) -> None:
    rows = ["a0", "a1", "a2", "a3 @@held", "a4 @@held"]
    simulator.script(HELD)
    stop_with_three(run, rows)
    (shard,) = (run.output / PARTITION).glob("responses-*.jsonl")
    content = shard.read_bytes()
    torn = json.loads(content.splitlines()[-1])["id"]
    torn_bytes = len(content.splitlines(keepends=True)[-1]) - 20
    shard.write_bytes(content[:-20])
    before = calls(simulator)

    assert run.to_the_end() == 0, run.log_tail()

    assert calls_since(simulator, before) == {torn: 1, "a3": 1, "a4": 1}
    run.assert_whole(rows)
    assert_books_balance(run)
    assert f"torn tail of {torn_bytes} bytes" in run.log()


@pytest.mark.slow
def test_res_03_other_settings_are_refused_or_accepted_under_a_new_gen_id(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    rows = [f"a{n}" if n < 3 else f"a{n} @@held" for n in range(6)]
    simulator.script(HELD)
    run.spec_lines = "[defaults]\ntemperature = 0.7"
    run.write_spec()
    stop_with_three(run, rows)
    first = run.run_view()
    assert first is not None
    before = calls(simulator)
    run.spec_lines, run.max_new_tokens = "[defaults]\ntemperature = 1.0", 64
    run.write_spec()

    assert run.to_the_end() == 1
    told = run.log_tail()
    assert "temperature 0.7 -> 1.0" in told
    assert "400 -> 64" in told
    assert "--accept-changes" in told
    assert calls(simulator) == before
    refused = run.run_view()
    assert refused is not None
    assert (refused.state, refused.gen_id) == (RunState.STOPPED, first.gen_id)

    assert run.to_the_end("--accept-changes") == 0, run.log_tail()
    run.assert_whole(rows)
    by_gen_id = {line["id"]: line["gen_id"] for line in run.lines()}
    assert {by_gen_id[f"a{n}"] for n in range(3)} == {first.gen_id}
    (second,) = {by_gen_id[f"a{n}"] for n in range(3, 6)}
    assert second != first.gen_id
    manifest = json.loads((run.output / "manifest.json").read_bytes())
    assert manifest["gen_ids"].keys() == {first.gen_id, second}
    assert manifest["gen_ids"][second]["sampling"]["temperature"] == 1.0
    sent = {entry.row.split()[0]: entry for entry in simulator.stats.requests()}
    assert {n: sent[f"a{n}"].sampling_params["temperature"] for n in (0, 5)} == {0: 0.7, 5: 1.0}
    assert {line["max_new_tokens"] for line in run.lines()} == {400, 64}


@pytest.mark.slow
def test_res_03_concurrency_budgets_and_waiting_change_freely(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    rows = [f"a{n}" if n < 3 else f"a{n} @@held" for n in range(6)]
    simulator.script(HELD)
    stop_with_three(run, rows)
    first = run.run_view()
    run.concurrency = 3
    run.run_lines = (
        'token_budget = "1M"\nrequest_timeout_s = 100\nstop_grace_s = 1\nstall_after_s = 60'
    )
    run.write_spec()

    assert run.to_the_end() == 0, run.log_tail()

    second = run.run_view()
    assert first is not None
    assert second is not None
    assert (second.gen_id, second.token_budget) == (first.gen_id, 1_000_000)
    run.assert_whole(rows)


@pytest.mark.slow
def test_res_04_resume_with_another_concurrency_three_times(
    tmp_path: Path,
) -> None:
    rows = [f"a{n}" for n in range(200)]
    in_flight = 0
    with SimulatorThread(port=0, delay_scale=0.1) as simulator:
        simulator.script({"*": ["ok delay=random 0.1..2 (seed 7)"]})
        run = CaseRun(tmp_path, simulator.url)
        run.write_rows(rows)
        try:
            for concurrency, until in ((32, 30), (4, 50), (64, 110)):
                run.concurrency = concurrency
                run.write_spec()
                run.start()
                run.wait_kept(until)
                run.kill_all()
                in_flight += run.partitions()[0].counts.running
            run.concurrency = 8
            run.write_spec()
            assert run.to_the_end() == 0, run.log_tail()
            run.assert_whole(rows)
            assert_books_balance(run)
        finally:
            run.close()
        assert simulator.stats.calls_total - len(rows) <= in_flight
