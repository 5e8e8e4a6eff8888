"""Deadlines of a spec: fixed when the run begins, and what the same words mean later."""

from datetime import UTC, datetime, timedelta

import pytest

from app.core.deadlines import reason_of
from app.core.states import PartitionState, RunState
from app.errors import InputError
from app.ledger import runs
from app.ledger.activity import Deed
from app.ledger.deadlines import (
    reach_partition,
    reach_run,
    set_partition_deadline,
    set_run_deadline,
)
from app.ledger.orders import Order
from tests.intake.desk import Desk, user

HOUR = timedelta(hours=1)
PAST = datetime(2024, 5, 1, 8, tzinfo=UTC)


async def begun(desk: Desk) -> Order:
    desk.write("p", [user("a", "x")])
    desk.own("p", deadline="+2h")
    desk.change(deadline="+1h")
    run = await desk.submit()
    return Order(run_id=run.id, who="anna", now=desk.clock.now())


async def test_a_deadline_is_a_moment_from_the_begin_of_the_run_on(desk: Desk) -> None:
    order = await begun(desk)

    run = runs.get_run(desk.ledger, order.run_id)
    assert run.deadline_at is not None
    assert timedelta() < run.deadline_at - desk.clock.now() <= HOUR
    assert desk.partition().deadline_at is not None

    # the same words again: what stands in the ledger stays, also where it has passed meanwhile
    set_run_deadline(desk.ledger, order, PAST)
    await desk.submit()
    again = runs.get_run(desk.ledger, order.run_id)
    assert (again.deadline_at, again.state) == (PAST, RunState.RUNNING)
    assert desk.partition().deadline_at != run.deadline_at

    desk.change(deadline=None)
    await desk.submit()
    assert runs.get_run(desk.ledger, order.run_id).deadline_at is None


async def test_a_deadline_that_has_passed_is_refused_before_anything_is_made(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    desk.own("p", deadline="2024-05-01T08:00")

    with pytest.raises(InputError, match=r'deadline of p: "2024-05-01T08:00" has passed'):
        await desk.submit()

    assert runs.list_runs(desk.ledger) == []
    assert not desk.output.exists()


async def test_a_run_that_its_deadline_stopped_goes_on_to_the_next_when_it_is_started_again(
    desk: Desk,
) -> None:
    order = await begun(desk)
    set_run_deadline(desk.ledger, order, PAST)
    set_partition_deadline(desk.ledger, order, "p", PAST)
    assert reach_partition(desk.ledger, order, desk.partition().id, PAST)
    assert reach_run(desk.ledger, order, PAST)
    why = reason_of(PAST.astimezone())
    deed = Deed(who="system", event="workers gone", detail=why, run_id=order.run_id)
    runs.move_run(desk.ledger, order.run_id, "workers gone", deed, order.now)
    assert desk.partition().state is PartitionState.PAUSED

    run = await desk.submit()

    assert run.state is RunState.RUNNING
    assert run.deadline_at is not None
    assert run.deadline_at > order.now
    assert desk.partition().state is PartitionState.ACTIVE
    assert any(said.startswith("run: deadline ") for said in desk.said)


async def test_words_that_mean_the_past_are_refused_for_a_run_at_rest(desk: Desk) -> None:
    desk.write("p", [user("a", "x")])
    ahead = (desk.clock.now() + HOUR).isoformat()
    desk.change(deadline=ahead)
    run = await desk.submit()
    order = Order(run_id=run.id, who="anna", now=desk.clock.now())
    set_run_deadline(desk.ledger, order, PAST)
    desk.change(deadline="2024-05-01T08:00Z")

    with pytest.raises(InputError, match="has passed"):
        await desk.submit()

    assert runs.get_run(desk.ledger, run.id).deadline_at == PAST
