"""A tick: what each outcome moves, of states, tokens, checkpoints and history."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from app.core.states import SampleState
from app.core.types import Claim, Fail, Keep, PartitionId, PutBack, ServerId, Tokens
from app.ledger import samples, workers
from app.ledger.activity import Deed
from tests.ledger.hand import NOW, URL, Hand, numbers
from tests.ledger.scene import Scene

DEED = Deed(who="operator", event="test")
End = Callable[[Hand, Claim], object]


def tokens(scene: Scene, partition_id: PartitionId) -> tuple[int, int, int, int]:
    found: Tokens = scene.view(partition_id).tokens
    assert found.received == found.kept + found.wasted + found.held
    return (found.received, found.kept, found.wasted, found.held)


ENDS: list[tuple[End, str, tuple[int, int, int, int]]] = [
    (lambda hand, claim: hand.keep(claim, unsaved=[11, 12]), "ok", (12, 12, 0, 0)),
    (lambda hand, claim: hand.keep(claim, SampleState.TRUNCATED), "truncated", (10, 10, 0, 0)),
    (lambda hand, claim: hand.keep(claim, SampleState.EMPTY), "empty", (10, 10, 0, 0)),
    (lambda hand, claim: hand.keep(claim, SampleState.SUSPECT), "suspect", (10, 10, 0, 0)),
    (lambda hand, claim: hand.put_back(claim, [11]), "pending", (11, 0, 0, 11)),
    (lambda hand, claim: hand.put_back(claim, [11], charged=True), "pending", (11, 0, 0, 11)),
    (lambda hand, claim: hand.put_back(claim, [11], start_over=True), "pending", (11, 0, 11, 0)),
    (lambda hand, claim: hand.fail(claim, unsaved=[11]), "failed", (11, 0, 11, 0)),
    (lambda hand, _: hand.die(), "pending", (10, 0, 0, 10)),
]


@pytest.mark.parametrize(("end", "state", "expected"), ENDS)
def test_each_end_moves_one_sample_and_all_its_tokens(
    scene: Scene, end: End, state: str, expected: tuple[int, int, int, int]
) -> None:
    partition_id = scene.one(n=3)
    hand = scene.hand(partition_id)
    claim = hand.one()
    hand.gain(claim, numbers(4))
    hand.gain(claim, numbers(6, start=5))
    assert tokens(scene, partition_id) == (10, 0, 0, 10)

    end(hand, claim)

    counts = scene.view(partition_id).counts
    assert getattr(counts, state) == (3 if state == "pending" else 1)
    assert (counts.running, counts.total) == (0, 3)
    assert tokens(scene, partition_id) == expected
    scene.check()


@pytest.mark.parametrize(("end", "_", "expected"), ENDS)
def test_checkpoints_stay_exactly_with_what_is_held(
    scene: Scene, end: End, _: str, expected: tuple[int, int, int, int]
) -> None:
    hand = scene.hand(scene.one(n=3))
    claim = hand.one()
    hand.gain(claim, numbers(10))

    end(hand, claim)

    (n_bytes,) = scene.rows("SELECT coalesce(sum(length(ids)), 0) FROM checkpoint")[0]
    assert n_bytes == 4 * expected[3]


def test_a_kept_line_has_its_place_and_its_reason(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=2))
    first, second = hand.claim(2)
    hand.keep(first, unsaved=[1])
    outcome = Keep(state=SampleState.TRUNCATED, finish_reason="length", flags=("clipped", "x"))

    hand.end(second, outcome, numbers(7))

    assert scene.rows(
        "SELECT state, output_tokens, shard_id, line_offset, line_bytes, finish_reason, flags,"
        " reason, worker_id FROM sample WHERE position = 1"
    ) == [("truncated", 7, hand.shard_id, 10, 10, "length", "clipped,x", None, None)]
    assert scene.rows("SELECT committed_bytes FROM shard") == [(20,)]


def test_many_ends_in_one_tick_are_all_counted(scene: Scene) -> None:
    partition_id = scene.one(n=9)
    hand = scene.hand(partition_id)
    kept, failed, back, going = hand.claim(4)
    going_gain = hand.gained(going, numbers(5))
    settled = (
        hand.settled(kept, Keep(state=SampleState.OK, finish_reason="stop"), numbers(3)),
        hand.settled(failed, Fail(reason="no"), numbers(2)),
        hand.settled(back, PutBack(charged=True, reason="cut"), numbers(4)),
    )

    hand.tick(gains=(going_gain,), settled=settled)

    counts = scene.view(partition_id).counts
    assert (counts.ok, counts.failed, counts.pending, counts.running) == (1, 1, 6, 1)
    assert tokens(scene, partition_id) == (14, 3, 2, 9)
    scene.check()


def test_a_put_back_says_when_it_may_run_again_and_what_it_cost(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=1))
    hand.put_back(hand.one(), delay_s=2.5, charged=True, server_died=True)
    hand.later(3)
    hand.put_back(hand.one(), server_died=True)

    (row,) = scene.rows(
        "SELECT charged, server_deaths, attempt, not_before_at_ms, reason FROM sample"
    )

    assert row == (1, 2, 2, 0, "test")


def test_only_what_was_somebodys_fault_is_history(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=6))
    pause, charged, over, died, failed, kept = hand.claim(6)
    hand.put_back(pause)
    hand.put_back(charged, [1], charged=True, reason="timeout")
    hand.put_back(over, start_over=True, reason="gap")
    hand.put_back(died, server_died=True, reason="died")
    hand.fail(failed, "bad request")
    hand.keep(kept)

    rows = scene.rows("SELECT sample_id, attempt, charged, tokens, reason FROM attempt ORDER BY id")

    assert rows == [
        (charged.sample_id, 1, 1, 1, "timeout"),
        (over.sample_id, 1, 0, 0, "gap"),
        (died.sample_id, 1, 0, 0, "died"),
        (failed.sample_id, 1, 1, 0, "bad request"),
    ]


def test_a_tick_renews_the_lease_and_brings_the_orders(scene: Scene) -> None:
    partition_id = scene.one()
    hand = scene.hand(partition_id)
    scene.sql("INSERT INTO server (url, facts_json) VALUES (:url, '{}')", url=URL)
    workers.set_shares(scene.ledger, {hand.worker_id: {settle_server(scene): 12}})
    workers.set_desired(scene.ledger, hand.worker_id, "drain")
    hand.later(20)

    orders = hand.tick()

    assert (orders.desired, dict(orders.shares)) == ("drain", {URL: 12})
    lease = workers.get_worker(scene.ledger, hand.worker_id).lease_expires_at
    assert lease == NOW + timedelta(seconds=50)


def settle_server(scene: Scene) -> ServerId:
    (row,) = scene.rows("SELECT id FROM server")
    return ServerId(int(str(row[0])))


def test_a_workers_received_tokens_are_what_it_has_brought(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=4))
    one, two, three = hand.claim(3)
    hand.gain(one, numbers(5))
    hand.keep(one, unsaved=numbers(2))
    hand.put_back(two, numbers(3), start_over=True)
    hand.fail(three, unsaved=numbers(4))

    assert workers.get_worker(scene.ledger, hand.worker_id).received_tokens == 14


def test_the_line_that_a_retry_replaces_is_wasted_only_when_it_is_replaced(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    hand.keep(hand.one(), SampleState.SUSPECT, numbers(30))
    samples.retry(scene.ledger, partition_id, [SampleState.SUSPECT], None, DEED, NOW)
    assert tokens(scene, partition_id) == (30, 30, 0, 0)
    claim = hand.one()
    hand.gain(claim, numbers(4))
    assert tokens(scene, partition_id) == (34, 30, 0, 4)
    scene.check()

    hand.keep(claim, unsaved=[5])

    assert tokens(scene, partition_id) == (35, 5, 30, 0)
    scene.check()


def test_the_line_of_a_retried_sample_stays_valid_when_the_retry_fails(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    hand.keep(hand.one(), SampleState.SUSPECT, numbers(30))
    samples.retry(scene.ledger, partition_id, [SampleState.SUSPECT], None, DEED, NOW)

    hand.fail(hand.one(), unsaved=numbers(3))

    assert tokens(scene, partition_id) == (33, 30, 3, 0)
    assert scene.rows("SELECT state, output_tokens, line_bytes FROM sample") == [("failed", 30, 10)]
    scene.check()


def test_a_dropped_stop_tail_is_wasted_once(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    hand.put_back(hand.one(), numbers(20))
    (claim,) = hand.claim(1, {"stop": "####"})

    hand.keep(claim, unsaved=numbers(10, start=17))

    assert tokens(scene, partition_id) == (30, 26, 4, 0)
    scene.check()


def test_what_came_and_is_not_in_the_line_is_wasted(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    claim = hand.one()
    hand.gain(claim, numbers(20))
    entry = hand.settled(claim, Keep(state=SampleState.OK, finish_reason="stop"), numbers(10))

    hand.tick(settled=(replace(entry, line=hand.line(25)),))

    assert tokens(scene, partition_id) == (30, 25, 5, 0)
    scene.check()
