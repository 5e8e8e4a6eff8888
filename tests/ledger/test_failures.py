"""Failures by reason: counted in bounded pieces, and retried exactly."""

import pytest

from app.core.reasons import Choice, group_of
from app.core.states import SampleState
from app.core.types import PartitionId
from app.ledger import activity, failures, repairs
from app.ledger.activity import Deed
from tests.ledger.hand import NOW
from tests.ledger.plans import recorded, scans
from tests.ledger.scene import Part, Scene

FAILED = SampleState.FAILED


def fail(scene: Scene, partition_id: PartitionId, reasons: list[str]) -> None:
    hand = scene.hand(partition_id)
    for claim, reason in zip(hand.claim(len(reasons)), reasons, strict=True):
        hand.fail(claim, reason)


def counted(scene: Scene, partition_id: PartitionId) -> dict[str | None, tuple[int, bool]]:
    found = failures.survey(scene.ledger, scene.run_id(partition_id), None, None)
    return {each.reason: (each.n, each.is_least) for each in found.variants}


def retry(scene: Scene, partition_id: PartitionId, choice: Choice) -> int:
    chosen = failures.members(scene.ledger, partition_id, FAILED, choice.takes)
    deed = Deed(who="anna", event="retry", run_id=scene.run_id(partition_id))
    return failures.retry_members(scene.ledger, partition_id, FAILED, chosen, deed, NOW)


def test_each_reason_is_counted_with_its_first_and_last(scene: Scene) -> None:
    partition_id = scene.one(n=6)
    fail(scene, partition_id, ["b", "a", "b", "b"])

    found = failures.survey(scene.ledger, scene.run_id(partition_id), None, None)

    assert [(each.reason, each.n) for each in found.variants] == [("a", 1), ("b", 3)]
    positions = {row[0]: row[1] for row in scene.rows("SELECT id, position FROM sample")}
    assert [positions[found.variants[1].first], positions[found.variants[1].last]] == [0, 3]
    assert found.variants[0].first_at == NOW
    assert found.unfinished == ()


def test_a_kept_answer_that_is_suspect_has_no_reason_and_is_counted(scene: Scene) -> None:
    partition_id = scene.one(n=3)
    hand = scene.hand(partition_id)
    for claim in hand.claim(2):
        hand.keep(claim, SampleState.SUSPECT, [1])

    assert counted(scene, partition_id) == {None: (2, False)}


def test_one_reason_too_large_to_count_is_known_by_the_rest(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "LARGEST_COUNT", 2)
    partition_id = scene.one(n=9)
    fail(scene, partition_id, ["a", "b", "b", "b", "b", "b"])

    assert counted(scene, partition_id) == {"a": (1, False), "b": (5, False)}


def test_two_reasons_too_large_to_count_say_that_there_are_more(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "LARGEST_COUNT", 2)
    partition_id = scene.one(n=9)
    fail(scene, partition_id, ["a", "a", "a", "b", "b", "b", "c"])

    assert counted(scene, partition_id) == {"a": (2, True), "b": (2, True), "c": (1, False)}


def test_more_reasons_than_are_looked_at_are_said(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "MOST_REASONS", 3)
    monkeypatch.setattr(failures, "_LEAST_REASONS", 3)
    partition_id = scene.one(n=9)
    fail(scene, partition_id, ["a", "b", "c", "d"])

    found = failures.survey(scene.ledger, scene.run_id(partition_id), None, None)

    assert len(found.variants) < 4
    assert found.unfinished == ((partition_id, FAILED),)


@pytest.mark.parametrize(("piece", "at_once"), [(1, 1), (2, 2), (2_000, 1_000)])
def test_a_group_is_retried_whole_and_nothing_else(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, piece: int, at_once: int
) -> None:
    monkeypatch.setattr(failures, "PIECE_SAMPLES", piece)
    monkeypatch.setattr(failures, "_REASONS_AT_ONCE", at_once)
    first, other = scene.run(Part(name="a", n=8), Part(name="b", n=2))
    fail(scene, first, ["boom 1", "bang", "boom 2", "boom 2", "boom", "boom 3"])
    fail(scene, other, ["boom 1"])

    n = retry(scene, first, Choice(group=group_of(FAILED, "boom 9")))

    assert n == 4
    left = scene.rows("SELECT reason FROM sample WHERE state = 'failed' ORDER BY id")
    assert left == [("bang",), ("boom",), ("boom 1",)]
    noted = [each.event for each in activity.latest(scene.ledger, scene.run_id(first))]
    assert noted.count("retry") == 1
    scene.check()


def test_a_sample_that_was_claimed_meanwhile_is_left_alone_and_none_moves_twice(
    scene: Scene,
) -> None:
    partition_id = scene.one(n=3)
    fail(scene, partition_id, ["boom", "boom", "boom"])
    chosen = failures.members(scene.ledger, partition_id, FAILED, Choice().takes)
    deed = Deed(who="anna", event="retry", run_id=scene.run_id(partition_id))

    def again() -> int:
        return failures.retry_members(scene.ledger, partition_id, FAILED, chosen, deed, NOW)

    assert again() == 3
    assert again() == 0  # pending: not theirs any more
    fail(scene, partition_id, ["boom", "boom"])
    assert again() == 0  # failed anew since: another attempt
    counts = scene.view(partition_id).counts
    assert (counts.failed, counts.pending) == (2, 1)
    scene.check()


def test_what_was_rejected_is_never_moved(scene: Scene) -> None:
    partition_id = scene.one(n=1)
    scene.sql("UPDATE sample SET state = 'rejected', reason = 'x'")
    scene.sql("UPDATE partition SET n_pending = 0, n_rejected = 1")
    rejected = SampleState.REJECTED
    chosen = failures.members(scene.ledger, partition_id, rejected, Choice().takes)

    assert len(chosen) == 1
    deed = Deed(who="anna", event="retry", run_id=scene.run_id(partition_id))
    assert failures.retry_members(scene.ledger, partition_id, rejected, chosen, deed, NOW) == 0


def test_survey_and_retry_are_answered_from_indexes_and_count_no_further_than_the_cap(
    scene: Scene,
) -> None:
    partition_id = scene.one(n=3_000)
    scene.sql("UPDATE sample SET state = 'failed', reason = 'boom ' || (position % 3)")
    repairs.rebuild(scene.ledger, partition_id)

    with recorded(scene.ledger) as asked:
        failures.survey(scene.ledger, scene.run_id(partition_id), None, None)
        retry(scene, partition_id, Choice())

    assert len(asked) > 5
    assert scans(scene.ledger, asked) == {}
    assert scans(scene.ledger, asked, "attempt") == {}
    counts = [each for each in asked if "count(*)" in each.statement]
    assert counts
    assert all("LIMIT" in each.statement for each in counts)
