"""Orders that pages give to a run that lives: requests start again, a stop is taken back."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from app.api import carry_out
from app.api.schemas import RestartOrder, ResumeOrder, RunOrder, StopOrder
from app.controls import find_run
from app.core.states import PartitionState, RunState
from app.simulator.server import SimulatorThread
from tests.process.accounts import assert_books_balance
from tests.process.case_run import PARTITION, CaseRun
from tests.process.run_process import wait_for
from tests.process.test_cases_orders import in_flight, partition

pytestmark = pytest.mark.slow


def order(run: CaseRun, wanted: RunOrder) -> None:
    with run.ledger() as ledger:
        found = find_run(ledger, "1")
        carry_out(ledger, found, wanted, who="anna (page)", now=datetime.now(UTC))


def state(run: CaseRun) -> RunState:
    with run.ledger() as ledger:
        return find_run(ledger, "1").state


def moves(run: CaseRun) -> list[str]:
    return [each.detail for each in reversed(run.deeds()) if each.event == "state"]


def begun(run: CaseRun, simulator: SimulatorThread) -> tuple[list[str], Callable[[], int]]:
    simulator.script({"*": ["ok delay=2"]})
    rows = [f"a{n}" for n in range(60)]
    run.write_rows(rows)
    run.start()
    wait_for(lambda: in_flight(simulator)["a"] == 8, "eight in flight")
    return rows, lambda: int(simulator.stats.aborts + simulator.stats.disconnects)


def test_requests_that_stand_still_are_taken_back_and_sent_anew(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    rows, n_withdrawn = begun(run, simulator)

    order(run, RestartOrder(partitions=(PARTITION,)))

    wait_for(lambda: len(moves(run)) > 1, "the partition to go on")
    assert moves(run) == [
        f"{PARTITION}: active -> paused (requests start again)",
        f"{PARTITION}: paused -> active",
    ]
    wait_for(lambda: in_flight(simulator)["a"] == 8, "eight in flight again")
    assert n_withdrawn() > 0
    simulator.script({"*": ["ok"]})
    assert run.wait(60) == 0, run.log_tail()
    run.assert_whole(rows)
    assert_books_balance(run)


def test_a_stop_that_is_taken_back_while_it_drains_loses_nothing(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    rows, n_withdrawn = begun(run, simulator)

    order(run, StopOrder(finish=True, reason="the disk is changed"))
    assert state(run) is RunState.STOPPING
    order(run, ResumeOrder())

    wait_for(lambda: partition(run).state is PartitionState.ACTIVE, "the partition to go on")
    assert state(run) is RunState.RUNNING
    simulator.script({"*": ["ok"]})
    assert run.wait(60) == 0, run.log_tail()
    run.assert_whole(rows)
    assert n_withdrawn() == 0
    assert_books_balance(run)
