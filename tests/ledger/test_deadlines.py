"""Deadlines in the ledger: set, reached once, moved; each effect under its guard."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import from_ms, to_ms
from app.core.deadlines import shown
from app.core.states import PartitionState, RunState
from app.core.types import PartitionId
from app.errors import ConflictError, NotFoundError
from app.events import Event, RunMoved
from app.ledger import activity, runs
from app.ledger.activity import Deed
from app.ledger.deadlines import (
    reach_partition,
    reach_run,
    set_partition_deadline,
    set_run_deadline,
)
from app.ledger.orders import Order, move_partitions
from app.supervisor.deadlines import reach_deadlines
from tests.ledger.hand import NOW
from tests.ledger.scene import Part, Scene

AT = (NOW + timedelta(hours=1)).replace(second=0)
LATER = AT + timedelta(hours=1)


def order(scene: Scene, now: datetime = NOW) -> Order:
    return Order(run_id=scene.run_id(scene.partition_ids[0]), who="anna", now=now)


def state_of_run(scene: Scene) -> RunState:
    return runs.get_run(scene.ledger, order(scene).run_id).state


def look(scene: Scene, now: datetime) -> list[Event]:
    """Do what the supervisor's step does first."""
    events: list[Event] = []
    run = runs.get_run(scene.ledger, order(scene).run_id)
    partitions = runs.partitions_of(scene.ledger, run.id)
    moved = reach_deadlines(scene.ledger, run, partitions, now, events.append)
    assert moved or not events
    return events


def details(scene: Scene) -> list[str]:
    run_id = order(scene).run_id
    return [f"{one.who}: {one.detail}" for one in activity.latest(scene.ledger, run_id, 9)]


def test_a_deadline_is_set_moved_and_taken_away_and_each_is_noted(scene: Scene) -> None:
    scene.run(Part(name="a"), Part(name="b"))
    set_run_deadline(scene.ledger, order(scene), AT)
    (change,) = set_partition_deadline(scene.ledger, order(scene), "a", LATER)

    assert (change.old, change.new) == ("none", shown(LATER.astimezone()))
    run = runs.get_run(scene.ledger, order(scene).run_id)
    assert run.deadline_at == AT
    assert scene.view(scene.partition_ids[0]).deadline_at == LATER
    assert scene.view(scene.partition_ids[1]).deadline_at is None
    assert details(scene)[0].startswith("anna: a: none -> ")

    set_run_deadline(scene.ledger, order(scene), None)
    assert runs.get_run(scene.ledger, run.id).deadline_at is None
    with pytest.raises(NotFoundError, match="no partition c"):
        set_partition_deadline(scene.ledger, order(scene), "c", AT)


def test_a_partition_is_paused_with_the_deadline_as_its_reason_and_the_other_works_on(
    scene: Scene,
) -> None:
    first, second = scene.run(Part(name="a"), Part(name="b"))
    set_partition_deadline(scene.ledger, order(scene), "a", AT)

    look(scene, AT - timedelta(milliseconds=1))
    assert scene.view(first).state is PartitionState.ACTIVE
    look(scene, AT)

    assert scene.view(first).state is PartitionState.PAUSED
    assert scene.view(first).reason == f"deadline {AT.astimezone():%H:%M} reached"
    assert scene.view(second).state is PartitionState.ACTIVE
    assert details(scene)[0].startswith("system: a: at work -> paused (deadline ")
    assert scene.hand(first).claim(1) == []


def test_a_run_is_being_stopped_and_says_why(scene: Scene) -> None:
    scene.one()
    set_run_deadline(scene.ledger, order(scene), AT)

    events = look(scene, AT)

    run = runs.get_run(scene.ledger, order(scene).run_id)
    assert (run.state, run.state_since) == (RunState.STOPPING, AT)
    assert run.reason == f"deadline {AT.astimezone():%H:%M} reached"
    assert events == [RunMoved(run_id=run.id, state=RunState.STOPPING, reason=run.reason)]
    assert look(scene, LATER) == []


def test_a_paused_run_is_stopped_too_and_a_later_deadline_does_not_set_it_going(
    scene: Scene,
) -> None:
    scene.one()
    set_run_deadline(scene.ledger, order(scene), AT)
    run_id = order(scene).run_id
    deed = Deed(who="anna", event="pause", run_id=run_id)
    runs.move_run(scene.ledger, run_id, "pause", deed, NOW)

    events = look(scene, AT)

    run = runs.get_run(scene.ledger, run_id)
    assert run.state is RunState.STOPPING
    assert run.reason == f"deadline {AT.astimezone():%H:%M} reached while paused"
    assert events == [RunMoved(run_id=run.id, state=RunState.STOPPING, reason=run.reason)]
    assert details(scene)[0].startswith("system: run: paused -> stopping (deadline ")
    gone = Deed(who="system", event="workers gone", detail=run.reason, run_id=run_id)
    runs.move_run(scene.ledger, run_id, "workers gone", gone, AT)
    set_run_deadline(scene.ledger, order(scene, AT), LATER)
    assert state_of_run(scene) is RunState.STOPPED


def test_a_person_may_pause_what_its_deadline_has_paused_and_it_stays_paused(scene: Scene) -> None:
    (partition_id,) = scene.run(Part(name="a"))
    set_partition_deadline(scene.ledger, order(scene), "a", AT)
    look(scene, AT)
    system = Order(run_id=order(scene).run_id, who="system", now=AT)
    with pytest.raises(ConflictError, match="a is paused"):
        move_partitions(scene.ledger, system, ["a"], "pause", reason="failing")

    (change,) = move_partitions(scene.ledger, order(scene, AT), ["a"], "pause")

    assert (change.old, change.new) == ("paused by its deadline", "paused")
    set_partition_deadline(scene.ledger, order(scene, AT), "a", LATER)
    view = scene.view(partition_id)
    assert (view.state, view.reason) == (PartitionState.PAUSED, "")
    with pytest.raises(ConflictError, match="a is paused"):
        move_partitions(scene.ledger, order(scene, AT), ["a"], "pause")


def test_a_deadline_that_was_moved_at_that_moment_stops_nothing(scene: Scene) -> None:
    (partition_id,) = scene.run(Part(name="a"))
    set_run_deadline(scene.ledger, order(scene), LATER)
    set_partition_deadline(scene.ledger, order(scene), "a", LATER)
    before = scene.everything()

    assert not reach_run(scene.ledger, order(scene, AT), AT)
    assert not reach_partition(scene.ledger, order(scene, AT), partition_id, AT)

    assert scene.everything() == before


def stopped_by_deadline(scene: Scene) -> PartitionId:
    (partition_id,) = scene.run(Part(name="a"))
    set_run_deadline(scene.ledger, order(scene), AT)
    look(scene, AT)
    run = runs.get_run(scene.ledger, order(scene).run_id)
    deed = Deed(who="system", event="workers gone", detail=run.reason, run_id=run.id)
    runs.move_run(scene.ledger, run.id, "workers gone", deed, AT)
    return partition_id


@pytest.mark.parametrize("at", [LATER, None])
def test_moving_or_removing_it_sets_the_run_going_that_it_had_stopped(
    scene: Scene, at: datetime | None
) -> None:
    stopped_by_deadline(scene)
    assert state_of_run(scene) is RunState.STOPPED

    changes = set_run_deadline(scene.ledger, order(scene, AT), at)

    assert [change.what for change in changes] == ["deadline", "state"]
    run = runs.get_run(scene.ledger, order(scene).run_id)
    assert (run.state, run.reason, run.deadline_at) == (RunState.RUNNING, "", at)


def test_what_a_person_stopped_or_paused_stays_so(scene: Scene) -> None:
    first, second = scene.run(Part(name="a"), Part(name="b"))
    for name in "ab":
        set_partition_deadline(scene.ledger, order(scene), name, AT)
    move_partitions(scene.ledger, order(scene), ["a"], "pause")
    look(scene, AT)
    assert scene.view(second).state is PartitionState.PAUSED

    for name in "ab":
        set_partition_deadline(scene.ledger, order(scene, AT), name, LATER)

    assert scene.view(first).state is PartitionState.PAUSED
    assert scene.view(second).state is PartitionState.ACTIVE
    look(scene, LATER)
    assert scene.view(second).state is PartitionState.PAUSED


def test_a_partition_that_drained_when_it_was_reached_is_not_set_going_again(scene: Scene) -> None:
    (partition_id,) = scene.run(Part(name="a"))
    set_partition_deadline(scene.ledger, order(scene), "a", AT)
    move_partitions(scene.ledger, order(scene), ["a"], "drain")
    look(scene, AT)
    assert scene.view(partition_id).state is PartitionState.PAUSED

    set_partition_deadline(scene.ledger, order(scene, AT), "a", None)

    assert scene.view(partition_id).state is PartitionState.PAUSED


def test_while_the_run_is_being_stopped_its_deadline_stays(scene: Scene) -> None:
    scene.one()
    set_run_deadline(scene.ledger, order(scene), AT)
    look(scene, AT)
    before = scene.everything()

    with pytest.raises(ConflictError, match="being stopped by its deadline"):
        set_run_deadline(scene.ledger, order(scene, AT), LATER)

    assert scene.everything() == before


def test_a_run_that_is_resumed_after_its_deadline_goes_on(scene: Scene) -> None:
    stopped_by_deadline(scene)
    run = runs.get_run(scene.ledger, order(scene).run_id)
    deed = Deed(who="anna", event="resume", run_id=run.id)
    runs.move_run(scene.ledger, run.id, "resume", deed, LATER)

    look(scene, LATER + timedelta(hours=9))

    assert state_of_run(scene) is RunState.RUNNING


@given(st.integers(0, 4_102_444_800_000))
def test_a_moment_of_the_ledger_is_the_same_when_it_is_written_again(ms: int) -> None:
    """Else the guard of a deadline would miss the very deadline that it was decided on."""
    assert to_ms(from_ms(ms)) == ms
