"""From an entry of the activity to a message: once, in order, whatever dies in between."""

import asyncio
from contextlib import closing

import pytest

from app.controls import pause, resume, stop
from app.core.conditions import ConditionKind
from app.core.messages import MAX_TRIES
from app.events import NotificationTried
from app.ledger import deliveries, runs
from app.ledger.db import Ledger
from app.ledger.orders import Order, finish_run
from app.notifying import Notifier
from app.notifying.command import Command
from app.notifying.targets import Target
from tests.notifying.conftest import Post, hook
from tests.notifying.receiver import HANG, Receiver, receiving
from tests.waiting import wait_until

STALLED = str(ConditionKind.STALLED)


async def test_begin_end_and_stop_are_one_message_each(post: Post, receiver: Receiver) -> None:
    target = hook(receiver)
    notifier = post.notifier(target)
    notifier.page_address = "http://127.0.0.1:8400"
    began_at = post.hands.now()
    post.tell("4 requests are in flight,\nno token for 10 min", partition="B1_chat")
    await notifier.look(target)
    post.tell("over after 12 min", partition="B1_chat")
    home = post.home
    home.keep("B1_chat", 3)
    home.leave()
    run, now = home.run, post.hands.now()
    stop(home.ledger, run, who="operator", now=now, service_lives=False)
    await notifier.look(target)
    await notifier.look(target)

    assert receiver.told() == [("begin", STALLED), ("end", STALLED), ("stopped", "stopped")]
    assert len(set(receiver.ids())) == 3
    begin, end, stopped = receiver.heard
    assert begin["sentence"] == "4 requests are in flight, no token for 10 min"
    assert begin["partition"] == end["partition"] == "B1_chat"
    assert begin["page"] == f"http://127.0.0.1:8400/runs/{home.run_id}"
    assert begin["since"] == end["since"] == began_at.isoformat(timespec="seconds")
    assert end["at"] > end["since"]
    assert stopped["sentence"] == (
        "stopped: 3 answers, 17 samples left; go on with: longwatch resume night"
    )
    assert [row[0] for row in post.rows()] == ["sent"] * 3
    await notifier.close()


async def test_a_finished_run_is_told_with_what_came_of_it(post: Post, receiver: Receiver) -> None:
    target = hook(receiver)
    notifier = post.notifier(target)
    home = post.home
    home.keep("B1_chat", 9)
    home.fail("B1_chat", 1)
    home.keep("B2_code", 10)
    home.leave()
    with home.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE partition SET sealed_at_ms = 1")
    assert finish_run(home.ledger, Order(run_id=home.run_id, who="system", now=post.hands.now()))
    await notifier.look(target)
    assert receiver.told() == [("finished", "finished")]
    said = f"finished: 19 answers, 1 failed sample; in {home.output_dir}"
    assert receiver.heard[0]["sentence"] == said
    await notifier.close()


async def test_what_is_no_news_is_not_told(post: Post, receiver: Receiver) -> None:
    target = hook(receiver)
    post.tell("before there was a target")
    notifier = post.notifier(target)
    home = post.home
    pause(home.ledger, home.run, (), who="operator", now=post.hands.now())
    resume(home.ledger, home.run, (), who="operator", now=post.hands.now())
    post.tell("a person who writes like the system", who="anna (page)")
    post.tell("repaired", kind="files repaired")
    await notifier.look(target)
    await notifier.close()
    assert receiver.heard == []
    assert post.rows() == []


async def test_what_happened_while_no_service_lived_is_told_by_the_next(
    post: Post, receiver: Receiver
) -> None:
    target = hook(receiver)
    first = post.notifier(target)
    post.tell("stalls")
    await first.close()
    post.tell("over after 3 min")
    second = post.notifier(target)
    await second.look(target)
    await second.close()
    assert receiver.told() == [("begin", STALLED), ("end", STALLED)]


async def test_a_target_that_was_away_from_the_settings_is_told_nothing_of_that_time(
    post: Post, receiver: Receiver
) -> None:
    target = hook(receiver)
    receiver.script.append("500")
    first = post.notifier(target)
    post.tell("first")
    await first.look(target)
    await first.close()
    without = post.notifier()
    post.tell("second")
    await without.close()
    assert post.rows() == [("given up", 1, "no longer set")]
    again = post.notifier(target)
    post.tell("third")
    await again.look(target)
    await again.close()
    assert [each["sentence"] for each in receiver.heard] == ["first", "third"]


async def test_a_failure_is_tried_again_later_and_the_next_waits_for_it(
    post: Post, receiver: Receiver
) -> None:
    target = hook(receiver)
    notifier = post.notifier(target)
    receiver.script += ["500", "503 Retry-After: 300"]
    post.tell("stalls")
    post.tell("over after 3 min")
    await notifier.look(target)
    assert post.rows()[0] == ("waiting", 1, "HTTP 500")
    await notifier.look(target)
    assert len(receiver.heard) == 1
    post.hands.at_s += 10.0
    await notifier.look(target)
    assert post.rows()[0] == ("waiting", 2, "HTTP 503")
    post.hands.at_s += 299.0
    await notifier.look(target)
    assert len(receiver.heard) == 2
    post.hands.at_s += 2.0
    await notifier.look(target)
    await notifier.close()
    assert receiver.told() == [("begin", STALLED)] * 3 + [("end", STALLED)]
    assert len(set(receiver.ids())) == 2
    assert [row[:2] for row in post.rows()] == [("sent", 3), ("sent", 1)]


async def test_ten_failures_are_given_up_and_said(post: Post, receiver: Receiver) -> None:
    target = hook(receiver)
    notifier = post.notifier(target)
    receiver.script += ["500"] * MAX_TRIES
    post.tell("stalls")
    post.tell("over after 3 min")
    began_s = post.hands.at_s
    for _ in range(MAX_TRIES):
        await notifier.look(target)
        post.hands.at_s += 901.0
    took_s = sum(10.0 * 2**n for n in range(7)) + 1_800.0
    assert took_s < 3_600.0
    await notifier.look(target)
    await notifier.close()
    assert post.hands.at_s > began_s
    assert [row[:2] for row in post.rows()] == [("given up", MAX_TRIES), ("sent", 1)]
    (said,) = post.noted("notification given up")
    assert f'webhook 127.0.0.1:{receiver.port} was not told of "stalled" in 10 tries' in said
    assert "HTTP 500" in said
    assert "a-secret" not in said
    assert receiver.told()[-1] == ("end", STALLED)


async def test_another_runs_message_does_not_wait(post: Post, receiver: Receiver) -> None:
    target = hook(receiver)
    notifier = post.notifier(target)
    receiver.script.append("500")
    post.tell("of the first run")
    post.home.run_id = post.home.add_run("other")
    post.tell("of the other run")
    await notifier.look(target)
    await notifier.close()
    assert [each["run"] for each in receiver.heard] == ["night", "other"]


async def test_a_slow_target_holds_nobody_up(post: Post, receiver: Receiver) -> None:
    slow = hook(receiver)
    receiver.script.append(HANG)
    quick = Command("/bin/true")
    notifier = post.notifier(slow, quick)
    post.tell("stalls")
    hanging = asyncio.create_task(notifier.look(slow))
    await wait_until(lambda: receiver.heard, "the slow one to be asked")
    await notifier.look(quick)
    assert post.rows("command") == [("sent", 1, "exit code 0")]
    assert not hanging.done()
    receiver.freed.set()
    await hanging
    await notifier.close()


async def test_a_round_that_ends_does_not_cut_a_delivery(post: Post, receiver: Receiver) -> None:
    target = hook(receiver)
    receiver.script.append(HANG)
    notifier = post.notifier(target)
    post.tell("stalls")
    look = asyncio.create_task(notifier.look(target))
    await wait_until(lambda: receiver.heard, "it to be asked")
    look.cancel()
    await asyncio.wait([look])
    leaving = asyncio.create_task(notifier.close())
    receiver.freed.set()
    await leaving
    assert len(receiver.heard) == 1
    assert post.rows() == [("sent", 1, "HTTP 200")]


async def test_the_last_look_tells_what_the_end_brought(post: Post, receiver: Receiver) -> None:
    target = hook(receiver)
    notifier = post.notifier(target)
    post.tell("just before the end")
    await notifier.close()
    assert receiver.told() == [("begin", STALLED)]


async def test_a_locked_ledger_makes_nothing_come_twice(post: Post, receiver: Receiver) -> None:
    target = hook(receiver)
    home = post.home
    impatient = Ledger(home.ledger.path, busy_timeout_ms=50)
    post.stack.callback(impatient.close)
    notifier = Notifier(impatient, (target,), post.hands, post.events.append)
    notifier.begin()
    post.tell("stalls")
    receiver.script.append(HANG)
    look = asyncio.create_task(notifier.look(target))
    await wait_until(lambda: receiver.heard, "it to be asked")
    other = Ledger(home.ledger.path)
    with closing(other), other.write():
        receiver.freed.set()
        await asyncio.wait([look])
        assert look.exception() is not None
        with pytest.raises(Exception, match="locked"):
            await notifier.look(target)
    await notifier.look(target)
    await notifier.close()
    assert len(receiver.heard) == 1
    assert post.rows() == [("sent", 1, "HTTP 200")]


async def test_a_kill_between_reply_and_note_repeats_under_the_same_id(
    post: Post, receiver: Receiver
) -> None:
    """The first notifier goes without noting anything, as a killed process does."""
    target = hook(receiver)
    notifier = post.notifier(target)
    post.tell("stalls")
    deliveries.enqueue(post.home.ledger, "webhook")
    waiting = deliveries.next_due(post.home.ledger, "webhook", post.hands.now())
    assert waiting is not None
    await target.send(notifier._message(waiting))

    second = post.notifier(target)
    await second.look(target)

    assert len(receiver.heard) == 2
    assert len(set(receiver.ids())) == 1
    assert deliveries.sent(post.home.ledger, waiting, "late") is False
    await notifier.close()
    await second.close()


async def test_every_try_is_an_event_and_none_holds_the_secret(
    post: Post, receiver: Receiver
) -> None:
    target = hook(receiver)
    receiver.script.append("500")
    notifier = post.notifier(target)
    post.tell("stalls")
    await notifier.look(target)
    post.hands.at_s += 20.0
    await notifier.look(target)
    await notifier.close()
    assert [(each.n_tries, each.is_ok) for each in post.tried()] == [(1, False), (2, True)]
    assert "a-secret" not in repr(post.events)
    assert isinstance(post.tried()[0], NotificationTried)


async def test_a_run_that_never_began_is_removed_with_its_messages(
    post: Post, receiver: Receiver
) -> None:
    target = hook(receiver)
    notifier = post.notifier(target)
    home = post.home
    first = home.run_id
    home.run_id = home.add_run("unusable")
    post.tell("disk low")
    await notifier.look(target)
    runs.delete_run(home.ledger, home.run_id)
    home.run_id = first
    post.tell("of the run that stays")
    await notifier.look(target)
    await notifier.close()
    assert [each["sentence"] for each in receiver.heard] == ["disk low", "of the run that stays"]


async def test_a_test_message_goes_to_all_and_is_noted(post: Post, receiver: Receiver) -> None:
    targets: tuple[Target, ...] = (hook(receiver), Command("/bin/false"))
    notifier = post.notifier(*targets)
    told = await notifier.test("anna (page)")
    await notifier.close()
    assert [(each.is_ok, each.said) for each in told] == [
        (True, "HTTP 200"),
        (False, "exit code 1"),
    ]
    (heard,) = receiver.heard
    assert (heard["event"], heard["run"]) == ("test", "")
    assert heard["id"].startswith("test-")
    (said,) = post.noted("notification test")
    assert "delivered, HTTP 200; command false: not delivered, exit code 1" in said
    assert "a-secret" not in said


async def test_a_receiver_that_comes_later_gets_what_waited(post: Post) -> None:
    with receiving() as before:
        port = before.port
        target = hook(before)
    notifier = post.notifier(target)
    post.tell("stalls")
    await notifier.look(target)
    assert post.rows() == [("waiting", 1, "connection refused")]
    with receiving(port=port) as receiver:
        post.hands.at_s += 10.0
        await notifier.look(target)
        await notifier.close()
        assert receiver.told() == [("begin", STALLED)]
