"""Claiming: in which order, for whom, and when not."""

from datetime import timedelta

import pytest

from app.core.states import SampleState
from app.core.types import Claim
from app.errors import DisownedError
from app.ledger import samples, workers
from app.ledger.activity import Deed
from tests.ledger.hand import NOW, numbers
from tests.ledger.scene import Part, Scene

DEED = Deed(who="operator", event="test")


def positions(claims: list[Claim]) -> list[int]:
    return [claim.position for claim in claims]


def test_samples_are_claimed_in_input_order_each_once(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=5))

    first, rest = hand.claim(2), hand.claim(10)

    assert positions(first) == [0, 1]
    assert positions(rest) == [2, 3, 4]
    assert hand.claim(10) == []
    assert len({claim.rid for claim in (*first, *rest)}) == 5
    scene.check()


def test_continuations_come_before_fresh_samples(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=6))
    claimed = hand.claim(4)
    for claim in (claimed[3], claimed[1]):
        hand.gain(claim, numbers(5))
    for claim in claimed:
        hand.put_back(claim)

    again = hand.claim(6)

    assert positions(again) == [1, 3, 0, 2, 4, 5]
    assert [len(claim.held) for claim in again] == [5, 5, 0, 0, 0, 0]
    scene.check()


def test_a_claim_says_all_that_sending_needs(scene: Scene) -> None:
    partition_id = scene.one(n=2, cap=77)
    scene.sql(
        "UPDATE sample SET max_new_tokens = 33, sampling_json = '{\"top_p\": 0.5}'"
        " WHERE position = 1"
    )
    hand = scene.hand(partition_id)

    plain, own = hand.claim(2)

    assert (plain.key, plain.index, plain.token_offset, plain.prompt_tokens) == ("row0", 0, 0, 3)
    assert (plain.max_new_tokens, dict(plain.sampling)) == (77, {})
    assert (own.max_new_tokens, dict(own.sampling)) == (33, {"top_p": 0.5})
    assert (own.key, own.token_offset, own.prompt_sha256) == ("row1", 3, "sha1")
    assert plain.attempt == 1
    assert not plain.held


def test_each_claim_of_a_sample_has_a_new_attempt_and_request_id(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=1))
    first = hand.one()
    hand.put_back(first)

    second = hand.one()

    assert (first.attempt, second.attempt) == (1, 2)
    assert first.rid != second.rid
    assert first.rid.split("-")[:3] == second.rid.split("-")[:3]


def test_the_goal_counts_running_samples(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=20, goal=5))

    claimed = hand.claim(4)
    more = hand.claim(4)

    assert (len(claimed), len(more)) == (4, 1)
    assert hand.claim(4) == []


def test_a_failed_sample_makes_room_under_the_goal(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=20, goal=3))
    first, second, third = hand.claim(9)
    hand.keep(first)
    hand.fail(second)
    hand.keep(third, SampleState.TRUNCATED)

    assert positions(hand.claim(9)) == [3]
    scene.check()


def test_a_goal_below_what_is_kept_claims_nothing(scene: Scene) -> None:
    partition_id = scene.one(n=5)
    hand = scene.hand(partition_id)
    for claim in hand.claim(3):
        hand.keep(claim)
    scene.sql("UPDATE partition SET goal_samples = 1")

    assert hand.claim(5) == []


@pytest.mark.parametrize("state", ["paused", "draining"])
def test_nothing_is_claimed_in_a_partition_that_is_not_active(scene: Scene, state: str) -> None:
    hand = scene.hand(scene.one())
    scene.sql("UPDATE partition SET state = :state", state=state)

    assert hand.claim(5) == []


@pytest.mark.parametrize("state", ["paused", "stopping", "stopped", "finished"])
def test_nothing_is_claimed_in_a_run_that_does_not_run(scene: Scene, state: str) -> None:
    hand = scene.hand(scene.one())
    scene.sql("UPDATE run SET state = :state", state=state)

    assert hand.claim(5) == []


@pytest.mark.parametrize("desired", ["drain", "stop"])
def test_nothing_is_claimed_for_a_worker_that_is_to_leave(scene: Scene, desired: str) -> None:
    hand = scene.hand(scene.one())
    workers.set_desired(scene.ledger, hand.worker_id, desired)

    assert hand.claim(5) == []


def test_a_buried_worker_claims_nothing_and_is_told_so(scene: Scene) -> None:
    hand = scene.hand(scene.one())
    hand.die()

    with pytest.raises(DisownedError, match=str(hand.worker_id)):
        hand.claim(1)

    scene.check()


def test_samples_without_token_ids_are_not_claimed(scene: Scene) -> None:
    partition_id = scene.one(n=4)
    scene.sql("UPDATE sample SET claim_rank = NULL WHERE position < 2")

    assert positions(scene.hand(partition_id).claim(9)) == [2, 3]


def test_a_sample_waits_until_its_time(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=2))
    first, _ = hand.claim(2)
    hand.put_back(first, delay_s=30.0)

    hand.now = NOW + timedelta(seconds=29.9)
    too_early = hand.claim(1)
    hand.now = NOW + timedelta(seconds=30)
    in_time = hand.claim(1)

    assert too_early == []
    assert positions(in_time) == [0]


def test_a_later_put_back_without_delay_clears_the_wait(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=1))
    hand.put_back(hand.one(), delay_s=30.0)
    hand.later(30)
    hand.put_back(hand.one())
    hand.now = NOW

    assert positions(hand.claim(1)) == [0]


def test_a_retried_sample_says_how_long_the_line_is_that_it_replaces(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    hand.keep(hand.one(), SampleState.SUSPECT, numbers(12))
    samples.retry(scene.ledger, partition_id, [SampleState.SUSPECT], None, DEED, NOW)

    claim = hand.one()

    assert claim.previous_tokens == 12
    assert (claim.charged, len(claim.held)) == (0, 0)
    assert claim.attempt == 2


def test_two_partitions_of_two_runs_do_not_see_each_other(scene: Scene) -> None:
    first = scene.run(Part(n=3), name="one", budget=1000)[0]
    second = scene.run(Part(n=3, goal=1), name="two")[0]

    scene.hand(first).claim(9)
    hand = scene.hand(second)

    assert positions(hand.claim(9)) == [0]
    assert scene.view(first).counts.running == 3
    assert scene.view(second).counts.running == 1
    scene.check()
