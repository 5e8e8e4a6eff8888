"""A claim of a half-made answer: what of it is kept, what starts over, and what that costs."""

import pytest

from app.core.types import PartitionId
from tests.ledger.hand import GEN, numbers
from tests.ledger.scene import Scene


def half_done(scene: Scene, n_tokens: int = 30) -> PartitionId:
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    claim = hand.one()
    hand.gain(claim, numbers(n_tokens - 1))
    hand.put_back(claim, unsaved=[n_tokens])
    return partition_id


def test_a_continuation_holds_what_came_and_says_who_made_it(scene: Scene) -> None:
    partition_id = half_done(scene)
    hand = scene.hand(partition_id)
    second = hand.one()
    hand.put_back(second, unsaved=[31, 32])

    third = hand.one()

    assert list(third.held) == numbers(32)
    assert [(each.from_token, each.rid == second.rid) for each in third.segments] == [
        (0, False),
        (30, True),
    ]
    assert {each.gen_id for each in third.segments} == {GEN}
    assert scene.view(partition_id).tokens.wasted == 0
    scene.check()


@pytest.mark.parametrize(
    "sampling",
    [
        {"frequency_penalty": 0.5},
        {"presence_penalty": -1},
        {"repetition_penalty": 1.05},
        {"json_schema": "{}"},
        {"regex": "a+"},
    ],
)
def test_what_cannot_be_continued_starts_over_and_is_counted_as_wasted(
    scene: Scene, sampling: dict[str, object]
) -> None:
    partition_id = half_done(scene)

    (claim,) = scene.hand(partition_id).claim(1, sampling)

    assert (len(claim.held), claim.segments) == (0, ())
    tokens = scene.view(partition_id).tokens
    assert (tokens.received, tokens.wasted, tokens.held) == (30, 30, 0)
    scene.check()


def test_a_record_of_its_own_penalty_starts_over_too(scene: Scene) -> None:
    partition_id = half_done(scene)
    scene.sql("UPDATE sample SET sampling_json = '{\"repetition_penalty\": 1.2}'")

    claim = scene.hand(partition_id).one()

    assert not claim.held
    assert scene.view(partition_id).tokens.wasted == 30


def test_another_generation_starts_over(scene: Scene) -> None:
    partition_id = half_done(scene)
    hand = scene.hand(partition_id)
    hand.gen_id = "gen-two"

    claim = hand.one()

    assert not claim.held
    assert scene.view(partition_id).tokens.wasted == 30
    scene.check()


def test_one_segment_of_another_generation_is_enough_to_start_over(scene: Scene) -> None:
    partition_id = half_done(scene)
    scene.sql("UPDATE checkpoint SET gen_id = 'gen-old' WHERE from_token = 0")

    assert not scene.hand(partition_id).one().held


def test_stop_strings_drop_a_tail_that_is_as_long_as_the_longest(scene: Scene) -> None:
    partition_id = half_done(scene)

    (claim,) = scene.hand(partition_id).claim(1, {"stop": ["ab", "straße"]})

    assert list(claim.held) == numbers(23)  # seven bytes, a token is at least one
    tokens = scene.view(partition_id).tokens
    assert (tokens.held, tokens.wasted, tokens.received) == (23, 7, 30)
    scene.check()


def test_a_stop_string_longer_than_the_answer_drops_all_of_it(scene: Scene) -> None:
    partition_id = half_done(scene, n_tokens=4)

    (claim,) = scene.hand(partition_id).claim(1, {"stop": "a long mark"})

    assert (len(claim.held), claim.segments) == (0, ())
    scene.check()


def test_a_dropped_tail_drops_the_segments_behind_it(scene: Scene) -> None:
    partition_id = half_done(scene)
    hand = scene.hand(partition_id)
    hand.put_back(hand.one(), unsaved=[31, 32])

    (claim,) = hand.claim(1, {"stop": "###"})

    assert list(claim.held) == numbers(29)
    assert [each.from_token for each in claim.segments] == [0]
    scene.check()
