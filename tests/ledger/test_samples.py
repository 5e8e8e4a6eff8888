"""What people may do to samples: retry them in bulk, list them by state and by reason."""

import pytest

from app.core.states import SampleState
from app.core.types import PartitionId
from app.ledger import activity, samples
from app.ledger.activity import Deed
from tests.ledger.hand import NOW, Hand, numbers
from tests.ledger.scene import Part, Scene

FAILURES = [SampleState.FAILED, SampleState.EMPTY, SampleState.SUSPECT]


def deed(scene: Scene, partition_id: PartitionId) -> Deed:
    return Deed(who="operator", event="retry", run_id=scene.run_id(partition_id))


def retry(
    scene: Scene,
    partition_id: PartitionId,
    states: list[SampleState] = FAILURES,
    reason: str | None = None,
) -> int:
    return samples.retry(scene.ledger, partition_id, states, reason, deed(scene, partition_id), NOW)


def one_of_each(scene: Scene) -> tuple[PartitionId, Hand]:
    """Return a partition with a sample in each final state, and one running."""
    partition_id = scene.one(n=8)
    hand = scene.hand(partition_id)
    ok, truncated, empty, suspect, failed, other, _ = hand.claim(7)
    hand.keep(ok, SampleState.OK, numbers(1))
    hand.keep(truncated, SampleState.TRUNCATED, numbers(2))
    hand.keep(empty, SampleState.EMPTY, numbers(3))
    hand.keep(suspect, SampleState.SUSPECT, numbers(4))
    hand.fail(failed, "the server answered 400: too long")
    hand.fail(other, "given up after 3 attempts: timeout")
    return partition_id, hand


def test_a_retry_moves_what_may_be_retried_and_nothing_else(scene: Scene) -> None:
    partition_id, _ = one_of_each(scene)

    n = retry(scene, partition_id, list(SampleState))

    counts = scene.view(partition_id).counts
    assert n == 4
    assert (counts.ok, counts.truncated, counts.running, counts.pending) == (1, 1, 1, 5)
    assert (counts.empty, counts.suspect, counts.failed) == (0, 0, 0)
    scene.check()


def test_a_retry_by_reason_takes_those_whose_reason_holds_the_words(scene: Scene) -> None:
    partition_id, hand = one_of_each(scene)

    assert retry(scene, partition_id, reason="no such words") == 0
    assert retry(scene, partition_id, reason="timeout") == 1

    assert scene.view(partition_id).counts.failed == 1
    assert [claim.position for claim in hand.claim(9)] == [5, 7]
    scene.check()


@pytest.mark.parametrize("words", ["100%", "_", "it's; DROP TABLE sample"])
def test_a_reason_is_words_and_no_pattern(scene: Scene, words: str) -> None:
    partition_id, _ = one_of_each(scene)

    assert retry(scene, partition_id, reason=words) == 0


def test_a_retry_counts_attempts_afresh_and_forgets_the_deaths(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    hand = scene.hand(partition_id)
    hand.put_back(hand.one(), charged=True, server_died=True, delay_s=3600)
    hand.later(3600)
    hand.fail(hand.one())

    retry(scene, partition_id)

    hand.now = NOW
    claim = hand.one()
    assert (claim.charged, claim.server_deaths, claim.attempt) == (0, 0, 3)


def test_a_rejected_sample_is_never_retried(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    scene.sql("UPDATE sample SET state = 'rejected'")
    scene.sql("UPDATE partition SET n_pending = 0, n_rejected = 1")

    assert retry(scene, partition_id, list(SampleState)) == 0


def test_a_retry_opens_a_sealed_partition_and_is_noted(scene: Scene) -> None:
    partition_id, _ = one_of_each(scene)
    scene.sql("UPDATE partition SET sealed_at_ms = 1")

    retry(scene, partition_id)

    assert scene.view(partition_id).sealed_at is None
    noted = activity.latest(scene.ledger, scene.run_id(partition_id))
    assert noted[0].event == "retry"


def test_a_retry_of_nothing_changes_nothing(scene: Scene) -> None:
    partition_id = scene.one(n=2)
    scene.sql("UPDATE partition SET sealed_at_ms = 1")
    before = scene.everything()

    assert retry(scene, partition_id) == 0

    assert scene.everything() == before


def test_a_retry_touches_its_own_partition_only(scene: Scene) -> None:
    first, second = scene.run(Part(name="a", n=1), Part(name="b", n=1))
    for each in (first, second):
        hand = scene.hand(each)
        hand.fail(hand.one())

    retry(scene, first)

    assert scene.view(first).counts.pending == 1
    assert scene.view(second).counts.failed == 1
    scene.check()


def test_reasons_are_listed_most_frequent_first(scene: Scene) -> None:
    partition_id = scene.one(n=5)
    hand = scene.hand(partition_id)
    for claim, why in zip(hand.claim(4), ["a", "b", "b", "b"], strict=True):
        hand.fail(claim, why)

    assert samples.reasons(scene.ledger, partition_id) == [
        (SampleState.FAILED, "b", 3),
        (SampleState.FAILED, "a", 1),
    ]


def test_failed_samples_are_listed_in_input_order_over_pages(scene: Scene) -> None:
    partition_id = scene.one(n=2100)
    scene.sql("UPDATE sample SET state = 'failed', reason = 'x' WHERE position % 2 = 0")

    listed = list(samples.with_state(scene.ledger, partition_id, SampleState.FAILED))

    assert [line.index for line in listed] == list(range(0, 2100, 2))
