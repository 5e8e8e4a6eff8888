"""Orders by the command line to a run that lives: each is seen in the ledger and on the server."""

import json
import signal
from collections import Counter

import pytest

from app.core.states import PartitionState, RunState
from app.core.views import PartitionView
from app.simulator.server import SimulatorThread
from tests.cases.settings import calls
from tests.process.accounts import assert_books_balance
from tests.process.case_run import PARTITION, CaseRun
from tests.process.run_process import wait_for

OTHER = "B3_q"


def partition(run: CaseRun, name: str = PARTITION) -> PartitionView:
    (found,) = [each for each in run.partitions() if each.name == name]
    return found


def in_flight(simulator: SimulatorThread) -> Counter[str]:
    """Return how many requests are open on the server, by the first letter of their rows."""
    return Counter(entry.row[0] for entry in simulator.stats.requests() if entry.ended_at is None)


@pytest.mark.slow
def test_pause_resume_and_concurrency_take_effect_on_the_server(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script({"*": ["ok delay=0.3"]})
    rows = [f"a{n}" for n in range(200)]
    others = [f"b{n}" for n in range(200)]
    run.write_rows(rows)
    run.write_rows(others, OTHER)
    run.start()
    wait_for(lambda: in_flight(simulator) == {"a": 4, "b": 4}, "both shares in flight")

    said = run.order("pause", "test", PARTITION)
    assert f"{PARTITION}: state active -> paused" in said
    assert "takes effect when" not in said
    assert partition(run).state is PartitionState.PAUSED
    wait_for(lambda: in_flight(simulator) == {"b": 8}, "the share to go to the other")
    wait_for(lambda: partition(run).counts.running == 0, "everything of it put back")

    run.order("concurrency", "test", OTHER, "2")
    assert partition(run, OTHER).own_concurrency == 2
    wait_for(lambda: in_flight(simulator) == {"b": 2}, "no more than two")

    run.order("resume", "test", PARTITION)
    wait_for(lambda: in_flight(simulator) == {"a": 6, "b": 2}, "the rest of the class")
    run.order("concurrency", "test", OTHER, "auto")
    assert partition(run, OTHER).own_concurrency is None

    simulator.script({"*": ["ok"]})
    assert run.wait(30) == 0, run.log_tail()
    run.assert_whole(rows)
    run.assert_whole(others, OTHER)
    # a pause charges nothing and sends again only what it took back
    assert simulator.stats.calls_total <= len(rows) + len(others) + 4
    assert_books_balance(run)


@pytest.mark.slow
def test_drain_export_and_stop_of_a_run_that_lives(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script({"*": ["ok delay=0.3"]})
    rows = [f"a{n}" for n in range(200)]
    run.write_rows(rows)
    run.start()
    wait_for(lambda: run.kept() >= 8 and in_flight(simulator)["a"] == 8, "eight in flight")

    run.order("drain", "test")
    wait_for(lambda: partition(run).state is PartitionState.PAUSED, "the end of the drain")
    assert partition(run).reason == "drained"
    assert simulator.stats.aborts == simulator.stats.disconnects == 0
    kept = run.kept()
    assert simulator.stats.calls_total == kept

    run.order("export", "test", str(run.folder / "copy"))
    copied = (run.folder / "copy" / PARTITION / "responses.jsonl").read_bytes().splitlines()
    exported = [json.loads(line)["id"] for line in copied]
    assert len(exported) == kept
    assert exported == sorted(exported, key=lambda key: int(key[1:]))

    run.order("resume", "test")
    wait_for(lambda: run.kept() > kept, "more answers")
    assert "state running -> stopping" in run.order("stop", "test")
    assert run.wait(30) == 3, run.log_tail()
    assert "The run is stopped" in run.log_tail()
    view = run.run_view()
    assert view is not None
    assert view.state is RunState.STOPPED
    assert simulator.stats.in_flight == 0

    simulator.script({"*": ["ok"]})
    assert run.to_the_end() == 0, run.log_tail()
    run.assert_whole(rows)
    assert_books_balance(run)


@pytest.mark.slow
def test_budget_goal_and_retry_open_again_what_they_had_closed(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """One partition is held up, so that the service lives while the other is over and reopened."""
    simulator.script(
        {
            "@@held": ["ok delay=3600", "ok"],
            "@@500": [{"json": [500, {"detail": "boom"}]}, "ok"],
            "*": ["ok with 100 output tokens"],
        }
    )
    rows = [f"a{n} @@500" if n == 1 else f"a{n}" for n in range(40)]
    run.max_new_tokens = 100
    run.run_lines = "max_attempts = 1"
    run.spec_lines = f'[partition.{PARTITION}]\ntoken_budget = "2k"\n[partition.{OTHER}]'
    run.write_spec()
    run.write_rows(rows)
    run.write_rows(["b0", "b1 @@held"], OTHER)
    run.start()
    run.wait_kept(1)

    wait_for(lambda: partition(run).budget_reached and partition(run).sealed_at, "the budget")
    assert 1_600 <= partition(run).tokens.used <= 2_000
    assert "budget 2,000 -> 3,000" in run.order("budget", "test", PARTITION, "3k")
    wait_for(lambda: partition(run).tokens.used > 2_900, "the new budget to be used")
    assert partition(run).tokens.used <= 3_000

    run.order("goal", "test", PARTITION, "35")
    run.order("budget", "test", PARTITION, "none")
    wait_for(lambda: partition(run).goal_reached and partition(run).sealed_at, "the goal")
    run.order("goal", "test", PARTITION, "none")
    wait_for(lambda: partition(run).counts.kept == 39 and partition(run).sealed_at, "all others")
    assert partition(run).counts.failed == 1
    assert "1 pending again" in run.order("retry", "test", PARTITION, "--reason", "boom")
    wait_for(
        lambda: partition(run).counts.kept == 40 and partition(run).sealed_at, "the failed one"
    )

    run.signal(signal.SIGTERM)
    assert run.wait(30) == 3, run.log_tail()
    assert calls(simulator) == {f"a{n}": 2 if n == 1 else 1 for n in range(40)} | {"b0": 1, "b1": 1}
    run.assert_whole(rows)
    assert_books_balance(run)
