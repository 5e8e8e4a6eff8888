"""A deadline of a whole run: it stops, keeps everything, and goes on when it is moved."""

from datetime import UTC, datetime

import pytest

from app.core.deadlines import is_by_deadline
from app.core.states import PartitionState, RunState
from app.ledger import runs
from app.ledger.deadlines import set_partition_deadline, set_run_deadline
from app.ledger.orders import Order
from app.simulator.server import SimulatorThread
from tests.process.accounts import assert_books_balance
from tests.process.case_run import PARTITION, CaseRun
from tests.process.run_process import wait_for

N_QUICK = 10
ROWS = [f"a{n}" if n < N_QUICK else f"a{n} @@held" for n in range(40)]


def begin(run: CaseRun, simulator: SimulatorThread) -> None:
    """Let the quick rows be answered; the others would take an hour."""
    simulator.script({"@@held": ["ok delay=3600"], "*": ["ok"]})
    run.write_rows(ROWS)
    run.start()
    run.wait_kept(N_QUICK)
    wait_for(lambda: simulator.stats.in_flight == run.concurrency, "the held ones in flight")


def state(run: CaseRun) -> RunState:
    view = run.run_view()
    assert view is not None
    return view.state


@pytest.mark.slow
def test_a_run_stops_at_its_deadline_loses_nothing_and_goes_on_when_it_is_moved(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    begin(run, simulator)
    said = run.order("deadline", "test", "+2s")
    assert "run: deadline none -> " in said
    assert run.wait(30) == 3, run.log_tail()

    view = run.run_view()
    assert view is not None
    assert view.state is RunState.STOPPED
    assert is_by_deadline(view.reason)
    assert view.deadline_at is not None
    assert view.deadline_at <= view.state_since
    assert simulator.stats.in_flight == 0
    assert run.kept() == N_QUICK
    assert sum(each.counts.running for each in run.partitions()) == 0

    assert "run: state stopped -> running" in run.order("deadline", "test", "+2h")
    simulator.script({"*": ["ok"]})
    assert run.to_the_end() == 0, run.log_tail()
    run.assert_whole(ROWS)
    assert_books_balance(run)


@pytest.mark.slow
def test_a_deadline_that_passed_while_nobody_served_is_kept_before_the_first_claim(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    begin(run, simulator)
    run.kill()
    run.kill_workers()
    at = datetime.now(UTC)  # what an order of before would have set
    with run.ledger() as ledger:
        (view,) = runs.list_runs(ledger)
        order = Order(run_id=view.id, who="anna", now=at)
        set_partition_deadline(ledger, order, PARTITION, at)
        set_run_deadline(ledger, order, at)
    assert state(run) is RunState.RUNNING
    calls = simulator.stats.calls_total

    run.start()
    assert run.wait(30) == 3, run.log_tail()

    assert state(run) is RunState.STOPPED
    assert run.kept() == N_QUICK
    assert simulator.stats.calls_total == calls
    (partition,) = run.partitions()
    assert partition.state is PartitionState.PAUSED
    assert is_by_deadline(partition.reason)

    # started once more it goes on: somebody wants it to, and knows how late it is
    simulator.script({"*": ["ok"]})
    run.order("deadline", "test", PARTITION, "none")
    assert run.to_the_end() == 0, run.log_tail()
    run.assert_whole(ROWS)
    assert_books_balance(run)
