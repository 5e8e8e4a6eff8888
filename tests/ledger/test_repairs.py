"""What recovery may change of samples: adopted, lost, moved, given back, counted anew."""

import pytest

from app.core.states import KEPT, SampleState
from app.core.types import Claim, PartitionId, ShardId
from app.ledger import repairs, samples, workers
from app.ledger.activity import Deed
from app.ledger.repairs import Adopted
from tests.ledger.hand import NOW, Hand, adopted_line, numbers
from tests.ledger.scene import Part, Scene


def retry(scene: Scene, partition_id: PartitionId) -> None:
    deed = Deed(who="operator", event="retry")
    samples.retry(scene.ledger, partition_id, [SampleState.SUSPECT], None, deed, NOW)


def test_bury_gives_back_what_ran_with_its_checkpoints_and_charges_nothing(scene: Scene) -> None:
    partition_id = scene.one(n=4)
    hand = scene.hand(partition_id)
    first, second, third = hand.claim(3)
    hand.gain(second, numbers(6))
    hand.keep(third, unsaved=[1])

    n = hand.die()

    heir = scene.hand(partition_id)
    again = heir.claim(4)
    assert n == 2
    assert [(claim.position, len(claim.held), claim.charged) for claim in again] == [
        (1, 6, 0),
        (0, 0, 0),
        (3, 0, 0),
    ]
    assert again[0].rid not in (first.rid, second.rid)
    scene.check()


def test_bury_can_be_repeated_and_takes_nothing_from_the_successor(scene: Scene) -> None:
    partition_id = scene.one(n=4)
    hand = scene.hand(partition_id)
    hand.claim(2)
    assert hand.die() == 2
    heir = scene.hand(partition_id)
    heir.claim(2)

    assert hand.die() == 0

    assert scene.view(partition_id).counts.running == 2
    assert [view.id for view in workers.living(scene.ledger)] == [heir.worker_id]
    scene.check()


def test_worker_ids_are_never_used_twice(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    first = scene.hand(partition_id).worker_id
    scene.sql("DELETE FROM worker")

    assert scene.hand(partition_id).worker_id > first


def adopted(claim: Claim, hand: Hand, n: int) -> Adopted:
    return adopted_line(claim, hand.line(n), SampleState.OK)


def test_an_adopted_line_ends_its_running_sample(scene: Scene) -> None:
    partition_id = scene.one(n=2)
    hand = scene.hand(partition_id)
    claim = hand.one()
    hand.gain(claim, numbers(6))
    line = adopted(claim, hand, 9)

    repairs.adopt(scene.ledger, partition_id, [line], (line.shard_id, 10, 77))

    view = scene.view(partition_id)
    assert (view.counts.ok, view.counts.running) == (1, 0)
    assert (view.tokens.received, view.tokens.kept, view.tokens.held) == (9, 9, 0)
    assert scene.rows("SELECT committed_bytes, inode FROM shard") == [(10, 77)]
    assert scene.rows("SELECT count(*) FROM checkpoint") == [(0,)]
    assert hand.die() == 0
    scene.check()


def test_an_adopted_line_replaces_the_line_of_a_retried_sample(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    hand.keep(hand.one(), SampleState.SUSPECT, numbers(30))
    retry(scene, partition_id)
    line = adopted(hand.one(), hand, 4)

    repairs.adopt(scene.ledger, partition_id, [line], (line.shard_id, 20, 1))

    tokens = scene.view(partition_id).tokens
    assert (tokens.received, tokens.kept, tokens.wasted) == (34, 4, 30)
    scene.check()


def test_an_adopted_line_that_is_shorter_than_what_is_held_takes_nothing_from_received(
    scene: Scene,
) -> None:
    """A file that was brought back holds an older answer than the checkpoints made since."""
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    claim = hand.one()
    hand.put_back(claim, numbers(50))
    line = adopted(claim, hand, 20)

    repairs.adopt(scene.ledger, partition_id, [line], (line.shard_id, 10, 1))

    tokens = scene.view(partition_id).tokens
    assert (tokens.received, tokens.kept, tokens.wasted, tokens.held) == (50, 20, 30, 0)
    scene.check()


@pytest.mark.parametrize("state", sorted(KEPT))
def test_a_kept_sample_whose_line_is_lost_is_pending_again(
    scene: Scene, state: SampleState
) -> None:
    partition_id = scene.one(n=3)
    hand = scene.hand(partition_id)
    kept, gone = hand.claim(2)
    hand.keep(kept, unsaved=numbers(5))
    hand.keep(gone, state, numbers(7))
    scene.sql("UPDATE partition SET sealed_at_ms = 1")

    repairs.lose_lines(scene.ledger, partition_id, [gone.sample_id])

    view = scene.view(partition_id)
    assert (view.counts.ok, view.counts.pending, view.counts.kept) == (1, 2, 1)
    assert (view.tokens.received, view.tokens.kept, view.tokens.wasted) == (12, 5, 7)
    assert view.sealed_at is None
    assert hand.one().previous_tokens == 0
    scene.check()


@pytest.mark.parametrize("after", ["pending", "held", "running", "failed"])
def test_the_lost_line_of_a_retried_sample_leaves_its_state(scene: Scene, after: str) -> None:
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    first = hand.one()
    hand.keep(first, SampleState.SUSPECT, numbers(7))
    retry(scene, partition_id)
    if after != "pending":
        claim = hand.one()
        if after == "held":
            hand.put_back(claim, numbers(3))
        if after == "failed":
            hand.fail(claim)

    repairs.lose_lines(scene.ledger, partition_id, [first.sample_id])

    state = "pending" if after == "held" else after
    assert getattr(scene.view(partition_id).counts, state) == 1
    assert scene.view(partition_id).tokens.wasted == 7
    if after == "held":
        assert len(hand.one().held) == 3
    scene.check()


def test_lost_lines_of_a_continuation_are_claimed_first_still(scene: Scene) -> None:
    partition_id = scene.one(n=3)
    hand = scene.hand(partition_id)
    _, second, _ = claimed = hand.claim(3)
    for claim in claimed:
        hand.keep(claim, SampleState.SUSPECT, numbers(7))
    retry(scene, partition_id)
    again = {claim.position: claim for claim in hand.claim(3)}
    for position in (0, 1, 2):
        hand.put_back(again[position], numbers(3) if position == 1 else ())

    repairs.lose_lines(scene.ledger, partition_id, [second.sample_id])

    assert [claim.position for claim in hand.claim(3)] == [1, 0, 2]
    scene.check()


def test_moved_lines_are_found_where_they_stand_now(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=2))
    first, second = hand.claim(2)
    hand.keep(first)
    hand.keep(second)
    assert hand.shard_id is not None

    repairs.move_lines(scene.ledger, [(second.sample_id, 0, 10)], hand.shard_id)
    repairs.move_lines(scene.ledger, [(first.sample_id, 99, 10)], another_shard(hand))

    rows = scene.rows("SELECT line_offset FROM sample ORDER BY position")
    assert rows == [(0,), (0,)]


def another_shard(hand: Hand) -> ShardId:
    assert hand.shard_id is not None
    return ShardId(hand.shard_id + 1)


def test_rebuild_counts_anew_what_was_counted_wrong(scene: Scene) -> None:
    partition_id = scene.one(n=8)
    hand = scene.hand(partition_id)
    hand.keep(hand.one(), unsaved=numbers(10))
    hand.put_back(hand.one(), numbers(11))
    received = scene.view(partition_id).tokens.received
    scene.sql(
        "UPDATE partition SET n_pending = 0, n_ok = 7, n_running = 5, kept_tokens = 9999,"
        " held_tokens = 1, wasted_tokens = 3"
    )

    repairs.rebuild(scene.ledger, partition_id)

    tokens = scene.view(partition_id).tokens
    assert (tokens.received, tokens.kept, tokens.held) == (received, 10, 11)
    scene.check()


def test_rebuild_raises_what_was_received_where_more_stands_in_the_rows(scene: Scene) -> None:
    partition_id = scene.one(n=8)
    hand = scene.hand(partition_id)
    hand.keep(hand.one(), unsaved=numbers(10))
    scene.sql("UPDATE partition SET received_tokens = 0, kept_tokens = 0, wasted_tokens = 0")

    repairs.rebuild(scene.ledger, partition_id)

    assert scene.view(partition_id).tokens.received == 10
    scene.check()


def test_running_attempts_are_those_of_one_worker(scene: Scene) -> None:
    first, second = scene.run(Part(name="a"), Part(name="b"))
    hand = scene.hand(first)
    scene.hand(second).claim(2)
    claim, done = hand.claim(2)
    hand.keep(done)

    found = repairs.running_attempts(scene.ledger, hand.worker_id)

    assert list(found) == [claim.sample_id]
    attempt = found[claim.sample_id]
    assert claim.rid.endswith(f"-{attempt.attempt:05d}-{attempt.salt:08x}")
