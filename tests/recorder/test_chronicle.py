"""Conditions as activity: begin and end once each, also across a restart and a locked ledger."""

from contextlib import closing

import pytest

from app.controls import pause, resume, stop
from app.ledger.activity import Deed
from app.ledger.db import Ledger
from app.ledger.runs import move_run
from tests.recorder.conftest import Desk

WAITING = "waiting for server"


def wait(desk: Desk, *, on: bool) -> None:
    since = desk.hands.now() if on else None
    for name in desk.home.names:
        desk.home.beat(name, waiting_since=since)


def test_begin_and_end_are_told_once_each(desk: Desk) -> None:
    recorder = desk.recorder()
    desk.stack.callback(recorder.close)
    desk.run(recorder, 2)
    wait(desk, on=True)
    desk.run(recorder, 70)
    wait(desk, on=False)
    desk.run(recorder, 5)

    (begin, end) = desk.told()

    assert begin[0] == end[0] == WAITING
    assert begin[1].startswith("The server has not answered for 5 s")
    assert end[1] == "over after 1m 11s"


def test_a_restart_doubles_nothing(desk: Desk) -> None:
    first = desk.recorder()
    wait(desk, on=True)
    desk.run(first, 6)
    first.close()

    second = desk.recorder()
    wait(desk, on=False)
    desk.run(second, 3)  # its workers have not found out yet
    wait(desk, on=True)
    desk.run(second, 40)
    assert [event for event, _ in desk.told()] == [WAITING]
    second.close()

    third = desk.recorder()
    desk.stack.callback(third.close)
    wait(desk, on=False)
    desk.run(third, 40)

    assert [detail[:10] for _, detail in desk.told()] == ["The server", "over after"]


def test_what_a_locked_ledger_does_not_take_is_told_later(desk: Desk) -> None:
    recorder = desk.recorder()
    desk.stack.callback(recorder.close)
    desk.run(recorder, 1)
    home = desk.home
    pause(home.ledger, home.run, (), who="operator", now=desk.hands.now())
    other = Ledger(home.ledger.path)
    with closing(other), other.write():
        desk.run(recorder, 2)
    assert desk.told() == []
    resume(home.ledger, home.run, (), who="operator", now=desk.hands.now())

    desk.run(recorder, 2)

    assert [event for event, _ in desk.told()] == ["all paused", "all paused"]


def test_a_server_that_is_back_in_a_moment_is_not_told_of(desk: Desk) -> None:
    recorder = desk.recorder()
    desk.stack.callback(recorder.close)
    desk.run(recorder, 2)
    for _ in range(3):
        wait(desk, on=True)
        desk.run(recorder, 4)
        wait(desk, on=False)
        desk.run(recorder, 2)
    assert desk.told() == []


def end_run(desk: Desk, event: str) -> None:
    """End the run as its supervisor does."""
    home = desk.home
    if event == "stop":
        stop(home.ledger, home.run, who="operator", now=desk.hands.now())
        event = "workers gone"
    deed = Deed(who="nobody asked for here", event=event, run_id=home.run_id)
    move_run(home.ledger, home.run_id, event, deed, desk.hands.now())


ENDED = (("stop", "stopped"), ("nothing left", "finished"))


@pytest.mark.parametrize(("event", "state"), ENDED)
def test_a_run_that_ends_leaves_nothing_open(desk: Desk, event: str, state: str) -> None:
    """Whatever still held: of a run that has ended nobody looks again."""
    recorder = desk.recorder()
    wait(desk, on=True)
    desk.run(recorder, 10)
    end_run(desk, event)
    desk.run(recorder, 40)
    recorder.close()

    again = desk.recorder()
    desk.run(again, 3)
    again.close()

    assert [event for event, _ in desk.told()] == [WAITING] * 2
    assert desk.told()[1][1] == f"over after 11 s: the run is {state}"


@pytest.mark.parametrize(("event", "state"), ENDED)
def test_a_run_that_ends_just_after_a_restart_leaves_nothing_open(
    desk: Desk, event: str, state: str
) -> None:
    """Nobody waits until it is known whether what held still holds."""
    first = desk.recorder()
    wait(desk, on=True)
    desk.run(first, 10)
    first.close()

    second = desk.recorder()
    desk.run(second, 2)
    end_run(desk, event)
    desk.run(second, 2)
    second.close()

    assert [event for event, _ in desk.told()] == [WAITING] * 2
    assert desk.told()[1][1].endswith(f"the run is {state}")


@pytest.mark.parametrize(("event", "state"), ENDED)
def test_what_a_killed_service_left_open_is_ended_by_the_next(
    desk: Desk, event: str, state: str
) -> None:
    first = desk.recorder()
    desk.stack.callback(first.close)
    wait(desk, on=True)
    desk.run(first, 10)
    end_run(desk, event)  # and the service is killed before it looks
    desk.hands.at_s += 3_600

    for _ in range(2):
        service = desk.recorder()
        desk.run(service, 2)
        service.close()

    assert [event for event, _ in desk.told()] == [WAITING] * 2
    assert desk.told()[1][1] == f"over after 5 s: the run is {state}"


def test_a_run_that_is_started_again_begins_anew(desk: Desk) -> None:
    recorder = desk.recorder()
    desk.stack.callback(recorder.close)
    wait(desk, on=True)
    desk.run(recorder, 10)
    end_run(desk, "stop")
    desk.run(recorder, 2)
    resume(desk.home.ledger, desk.home.run, (), who="operator", now=desk.hands.now())
    wait(desk, on=True)
    desk.run(recorder, 10)
    wait(desk, on=False)
    desk.run(recorder, 2)

    details = [detail for event, detail in desk.told() if event == WAITING]
    assert [detail.startswith("over after") for detail in details] == [False, True, False, True]
    assert details[3] == "over after 11 s"
