"""Extending in the ledger: nothing is counted twice, lost or wasted, however the attempt ends."""

from array import array
from collections.abc import Sequence

import pytest

from app.core.spec import LengthPolicy
from app.core.states import RunState, SampleState
from app.core.types import Fail, Keep, PartitionId, Segment
from app.ledger import extending, repairs, runs, shards
from app.ledger.activity import Deed
from app.ledger.extending import Cut, Going, Room
from app.ledger.orders import Order
from tests.ledger.hand import GEN, NOW, URL, Hand, adopted_line, numbers
from tests.ledger.scene import Part, Scene

CUT = Keep(state=SampleState.TRUNCATED, finish_reason="length")


def order(scene: Scene, partition_id: PartitionId) -> Order:
    return Order(run_id=scene.run_id(partition_id), who="operator", now=NOW)


def cuts(scene: Scene, partition_id: PartitionId, reason: str | None = None) -> list[Cut]:
    return extending.truncated(scene.ledger, partition_id, -1, 100, reason)


def going(cut: Cut, ids: Sequence[int], gen_id: str = GEN) -> Going:
    segment = Segment(from_token=0, rid="old", server=URL, gen_id=gen_id)
    return Going(cut=cut, pieces=[(segment, array("I", ids).tobytes())])


def extended(scene: Scene, partition_id: PartitionId, n_held: int = 16) -> None:
    batch = [going(cut, numbers(n_held)) for cut in cuts(scene, partition_id)]
    assert extending.go_on(scene.ledger, order(scene, partition_id), partition_id, batch) == []


def tokens(scene: Scene, partition_id: PartitionId) -> tuple[int, int, int, int]:
    scene.check()
    found = scene.view(partition_id).tokens
    return (found.received, found.kept, found.wasted, found.held)


@pytest.fixture
def cut_short(scene: Scene) -> tuple[PartitionId, Hand]:
    """A partition with one truncated answer of 16 tokens, and its worker."""
    partition_id = scene.one(n=3, cap=16)
    hand = scene.hand(partition_id)
    hand.end(hand.one(), CUT, numbers(16))
    assert tokens(scene, partition_id) == (16, 16, 0, 0)
    return partition_id, hand


def test_extending_moves_a_sample_and_no_token(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id)

    assert tokens(scene, partition_id) == (16, 16, 0, 0)
    counts = scene.view(partition_id).counts
    assert (counts.truncated, counts.pending) == (0, 3)
    claim = hand.one()
    assert list(claim.held) == numbers(16)
    assert (claim.previous_tokens, claim.line_tokens) == (16, 16)
    assert [(one.rid, one.server, one.gen_id) for one in claim.segments] == [("old", URL, GEN)]
    assert len(shards.valid_lines(scene.ledger, partition_id, -1, 10)) == 1


def test_a_longer_answer_counts_only_what_is_new(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id)
    claim = hand.one()
    hand.gain(claim, numbers(4, start=17))
    assert tokens(scene, partition_id) == (20, 16, 0, 4)
    assert scene.view(partition_id).tokens.used == 20

    hand.keep(claim, unsaved=[21])

    assert tokens(scene, partition_id) == (21, 21, 0, 0)
    assert len(shards.valid_lines(scene.ledger, partition_id, -1, 10)) == 1


def test_what_is_made_anew_of_the_old_answer_is_wasted_once(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id, n_held=15)
    claim = hand.one()
    assert tokens(scene, partition_id) == (16, 16, 0, 0)

    hand.keep(claim, unsaved=[16, 17])

    assert tokens(scene, partition_id) == (18, 17, 1, 0)


def test_a_stop_string_takes_its_tail_from_the_checkpoint_not_from_the_line(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id)
    (claim,) = hand.claim(1, {"stop": "##"})
    assert len(claim.held) == claim.line_tokens == 14
    assert tokens(scene, partition_id) == (16, 16, 0, 0)

    hand.keep(claim, unsaved=numbers(4, start=15))

    assert tokens(scene, partition_id) == (20, 18, 2, 0)


def test_an_extension_that_fails_leaves_the_answer_as_it_was(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    place = shards.valid_lines(scene.ledger, partition_id, -1, 10)
    extended(scene, partition_id)
    claim = hand.one()
    hand.gain(claim, numbers(4, start=17))

    hand.end(claim, Fail(reason="HTTP 400: too long"), [21])

    assert tokens(scene, partition_id) == (21, 16, 5, 0)
    assert scene.view(partition_id).counts.truncated == 1
    assert scene.view(partition_id).counts.failed == 0
    assert shards.valid_lines(scene.ledger, partition_id, -1, 10) == place
    (row,) = scene.rows("SELECT reason, output_tokens FROM sample WHERE state = 'truncated'")
    assert row == ("not extended: HTTP 400: too long", 16)
    assert cuts(scene, partition_id)[0].output_tokens == 16  # and can be extended again


def test_starting_over_starts_from_the_kept_answer(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id)
    claim = hand.one()
    hand.gain(claim, numbers(4, start=17))

    hand.put_back(claim, [21], start_over=True, charged=True)

    assert tokens(scene, partition_id) == (21, 16, 5, 0)
    again = hand.one()
    assert again.sample_id == claim.sample_id
    assert list(again.held) == numbers(16)


def test_a_lost_worker_loses_neither_the_line_nor_what_was_added(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id)
    hand.gain(hand.one(), numbers(4, start=17))
    assert hand.die() == 1

    assert tokens(scene, partition_id) == (20, 16, 0, 4)
    again = scene.hand(partition_id).one()
    assert list(again.held) == numbers(20)
    assert again.line_tokens == 16


def test_other_settings_start_over_and_the_old_line_stays_until_then(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id)
    hand.gen_id = "gen-two"
    claim = hand.one()
    assert not claim.held
    assert tokens(scene, partition_id) == (16, 16, 0, 0)

    hand.keep(claim, unsaved=numbers(20))

    assert tokens(scene, partition_id) == (36, 20, 16, 0)


def test_a_line_that_is_lost_while_it_is_extended_is_held_and_goes_on(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id, n_held=15)
    hand.gain(hand.one(), [99])
    hand.die()
    (sample_id,) = scene.rows("SELECT id FROM sample WHERE shard_id IS NOT NULL")[0]

    repairs.lose_lines(scene.ledger, partition_id, [sample_id])  # type: ignore[list-item]  # an id

    assert tokens(scene, partition_id) == (17, 0, 1, 16)
    claim = scene.hand(partition_id).one()
    assert (list(claim.held), claim.line_tokens) == ([*numbers(15), 99], 0)
    repairs.rebuild(scene.ledger, partition_id)
    assert tokens(scene, partition_id) == (17, 0, 1, 16)


def test_counting_anew_while_answers_are_extended_changes_nothing(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id, n_held=15)
    hand.gain(hand.one(), [99])
    before = tokens(scene, partition_id)
    repairs.rebuild(scene.ledger, partition_id)
    assert tokens(scene, partition_id) == before == (17, 16, 0, 1)


def test_a_longer_line_that_was_not_settled_is_adopted_whole(
    scene: Scene, cut_short: tuple[PartitionId, Hand]
) -> None:
    partition_id, hand = cut_short
    extended(scene, partition_id)
    claim = hand.one()
    hand.gain(claim, [17])
    line = hand.line(20)
    adopted = adopted_line(claim, line, SampleState.OK)
    repairs.adopt(scene.ledger, partition_id, [adopted], (line.shard_id, hand.shard_bytes, 1))
    hand.die()

    assert tokens(scene, partition_id) == (20, 20, 0, 0)


def test_a_sample_whose_line_was_moved_or_that_is_no_longer_truncated_is_missed(
    scene: Scene,
) -> None:
    partition_id = scene.one(n=2, cap=16)
    hand = scene.hand(partition_id)
    for claim in hand.claim(2):
        hand.end(claim, CUT, numbers(16))
    first, second = cuts(scene, partition_id)
    extending.go_on(scene.ledger, order(scene, partition_id), partition_id, [going(first, [1])])
    scene.sql("UPDATE sample SET line_offset = 77 WHERE id = :id", id=second.sample_id)
    before = scene.everything()

    batch = [going(first, [1]), going(second, [1])]
    missed = extending.go_on(scene.ledger, order(scene, partition_id), partition_id, batch)

    assert missed == [first.sample_id, second.sample_id]
    assert scene.everything() == before


def test_a_finished_run_is_opened_with_the_first_batch(scene: Scene) -> None:
    partition_id = scene.one(n=1, cap=16)
    hand = scene.hand(partition_id)
    hand.end(hand.one(), CUT, numbers(16))
    hand.die()
    scene.sql("UPDATE partition SET sealed_at_ms = 1")
    run_id = scene.run_id(partition_id)
    deed = Deed(who="system", event="nothing left", run_id=run_id)
    runs.move_run(scene.ledger, run_id, "nothing left", deed, NOW)

    extended(scene, partition_id)

    assert runs.get_run(scene.ledger, run_id).state is RunState.RUNNING
    assert scene.view(partition_id).sealed_at is None


def raised(
    scene: Scene, partition_id: PartitionId, n: int, usable: int | None, policy: LengthPolicy
) -> tuple[bool, int]:
    room = Room(limit_tokens=n, usable_tokens=usable, policy=policy)
    change, n_bounded = extending.raise_limit(
        scene.ledger, order(scene, partition_id), partition_id, room
    )
    return change is not None, n_bounded


def limits(scene: Scene) -> list[object]:
    return [row[0] for row in scene.rows("SELECT max_new_tokens FROM sample ORDER BY position")]


@pytest.mark.parametrize(
    ("usable", "policy", "expected", "n_bounded"),
    [
        (None, LengthPolicy.CLAMP, [None, None, 7, None], 0),
        (1_000, LengthPolicy.CLAMP, [None, None, 7, None], 0),
        (60, LengthPolicy.CLAMP, [None, 20, 7, None], 1),
        (60, LengthPolicy.REJECT, [None, 16, 7, None], 1),
        (41, LengthPolicy.CLAMP, [38, 16, 7, 38], 3),  # never below what it was
    ],
)
def test_each_prompt_gets_the_limit_that_the_context_leaves_it(
    scene: Scene, usable: int | None, policy: LengthPolicy, expected: list[object], n_bounded: int
) -> None:
    partition_id = scene.one(n=4, cap=16)
    scene.sql("UPDATE sample SET prompt_tokens = 40 WHERE position = 1")
    scene.sql("UPDATE sample SET max_new_tokens = 7 WHERE position = 2")
    scene.sql("UPDATE sample SET max_new_tokens = 16 WHERE position = 3")  # the partition's

    assert raised(scene, partition_id, 48, usable, policy) == (True, n_bounded)

    assert scene.view(partition_id).max_new_tokens == 48
    assert limits(scene) == expected
    assert raised(scene, partition_id, 48, usable, policy) == (False, 0)
    assert limits(scene) == expected


def test_a_raised_limit_reaches_a_living_worker_with_its_next_tick_and_claim(scene: Scene) -> None:
    partition_id = scene.one(n=2, cap=16)
    hand = scene.hand(partition_id)
    first = hand.one()
    assert hand.gain(first, [1]).max_new_tokens == 16
    raised(scene, partition_id, 48, None, LengthPolicy.CLAMP)

    assert hand.gain(first, [2]).max_new_tokens == 48
    assert (first.max_new_tokens, hand.one().max_new_tokens) == (16, 48)


def test_only_those_with_the_reason_and_only_of_the_partition_are_found(scene: Scene) -> None:
    one, two = scene.run(Part(name="a", n=3), Part(name="b", n=1))
    hand = scene.hand(one)
    for flags in (("thinking not closed",), (), ("clipped", "thinking not closed")):
        outcome = Keep(state=SampleState.TRUNCATED, finish_reason="length", flags=flags)
        hand.end(hand.one(), outcome, [1])
    other = scene.hand(two)
    other.end(other.one(), CUT, [1])

    assert [cut.position for cut in cuts(scene, one)] == [0, 1, 2]
    assert [cut.position for cut in cuts(scene, one, "thinking")] == [0, 2]
    assert [cut.position for cut in extending.truncated(scene.ledger, one, 0, 1, None)] == [1]


def test_the_ids_that_ended_answers_are_known_from_them(scene: Scene) -> None:
    partition_id = scene.one(n=4)
    hand = scene.hand(partition_id)
    for reason in ('{"type":"stop","matched":7}', '{"type":"stop","matched":"##"}', "stop"):
        hand.end(hand.one(), Keep(state=SampleState.OK, finish_reason=reason), [1])
    assert extending.end_ids(scene.ledger, partition_id) == {7}
