"""Partitions that are added to a run whose service lives: in mid-run, and after its end."""

import pytest

from app.simulator.server import SimulatorThread
from tests.cases.settings import calls
from tests.process.accounts import assert_books_balance
from tests.process.case_run import PARTITION, CaseRun
from tests.process.run_process import wait_for
from tests.process.serving import run_of, serving, submission

OTHER, LAST = "B3_q", "B2_long"


@pytest.mark.slow
def test_partitions_are_added_in_mid_run_and_to_a_finished_run(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script({"*": ["ok delay=0.2"]})
    rows, others, last = ([f"{x}{n}" for n in range(60)] for x in "abc")
    run.write_rows(rows)
    with serving(run) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        wait_for(lambda: run.kept() >= 8, "the middle of the run")

        run.write_rows(others, OTHER)
        answer = client.post("/runs/test/partitions", json=submission(run))
        assert answer.status_code == 200, answer.text
        assert answer.json()["added"] == [OTHER]
        assert client.post("/runs/test/partitions", json=submission(run)).json()["added"] == []
        assert run.kept() < len(rows)  # it was added while the first was under way
        simulator.script({"*": ["ok"]})
        wait_for(lambda: run_of(client)["state"] == "finished", "the end of both")
        run.assert_whole(rows)
        run.assert_whole(others, OTHER)

        run.write_rows(last, LAST)
        said = run.order("add", "test", str(run.spec))
        assert f'run 1 "test": added {LAST}' in said
        assert f"left as they are: {PARTITION}, {OTHER}" in said
        wait_for(lambda: run_of(client)["state"] == "finished", "the end of the third")
        assert run_of(client)["samples"]["ok"] == 180
    run.assert_whole(last, LAST)
    run.assert_whole(rows)
    assert set(calls(simulator).values()) == {1}
    assert_books_balance(run)
    events = [each.event for each in run.deeds()]
    assert events.count("partitions added") == 2


@pytest.mark.slow
def test_without_a_service_they_begin_when_the_run_next_starts(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    rows, others = [f"a{n}" for n in range(5)], [f"b{n}" for n in range(5)]
    run.write_rows(rows)
    assert run.to_the_end() == 0, run.log_tail()
    run.write_rows(others, OTHER)
    said = run.order("add", str(run.spec))
    assert f'run 1 "test": added {OTHER}' in said
    assert "they begin when the run next starts" in said
    assert run.to_the_end() == 0, run.log_tail()
    run.assert_whole(rows)
    run.assert_whole(others, OTHER)
    assert set(calls(simulator).values()) == {1}
