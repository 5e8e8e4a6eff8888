"""Statements that run each tick or claim are answered from an index, whatever the ledger's size."""

from collections.abc import Callable

import pytest

from app.core.types import PartitionId
from app.ledger import repairs, samples, workers
from tests.ledger.hand import NOW, Hand, numbers
from tests.ledger.plans import explained, recorded
from tests.ledger.scene import Part, Scene

N_ROWS = 120_000


@pytest.fixture
def large(scene: Scene) -> tuple[Scene, PartitionId]:
    """A partition of 120,000 samples, a third of them done; a second one of another run."""
    partition_id = scene.one(n=0)
    other = scene.run(Part(n=0), name="other")[0]
    for each in (partition_id, other):
        scene.sql(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :last)"
            " INSERT INTO sample (partition_id, position, record_index, replica, key, state,"
            " claim_rank, prompt_sha256, prompt_tokens, token_offset, attempt, charged,"
            " server_deaths, alone, rid_salt, not_before_at_ms, held_tokens, output_tokens)"
            " SELECT :id, i, i, 0, 'row' || i, CASE WHEN i % 3 = 0 THEN 'ok' ELSE 'pending' END,"
            " 1, 'sha', 3, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM n",
            id=each,
            last=N_ROWS // 2 - 1,
        )
        repairs.rebuild(scene.ledger, each)
    return scene, partition_id


def plans(scene: Scene, action: Callable[[], object]) -> dict[str, str]:
    """Return the query plan of each statement that the action executes."""
    with recorded(scene.ledger) as asked:
        action()
    return {text: "; ".join(steps) for text, steps in explained(scene.ledger, asked).items()}


def assert_no_scan(found: dict[str, str]) -> None:
    assert found
    scans = {sql: plan for sql, plan in found.items() if "SCAN s" in plan or "SCAN c" in plan}
    assert scans == {}  # of sample, by name or by alias, and of checkpoint
    assert not any("TEMP B-TREE" in plan for sql, plan in found.items() if "FROM sample" in sql)


def plan_with(found: dict[str, str], words: str) -> str:
    (plan,) = (plan for sql, plan in found.items() if words in sql)
    return plan


def test_a_claim_is_answered_from_its_index(large: tuple[Scene, PartitionId]) -> None:
    scene, partition_id = large
    hand = scene.hand(partition_id)

    found = plans(scene, lambda: hand.claim(64))

    assert len(hand.claimed) == 64
    assert "ix_sample_claim" in plan_with(found, "ORDER BY claim_rank")
    assert "ix_sample_suspected" in plan_with(found, "server_deaths >= 2")
    assert_no_scan(found)


def test_a_claim_of_a_suspect_is_answered_from_an_index(large: tuple[Scene, PartitionId]) -> None:
    scene, partition_id = large
    scene.sql("UPDATE sample SET server_deaths = 2 WHERE position = 40001")
    hand = scene.hand(partition_id)

    found = plans(scene, lambda: hand.claim(64))

    assert [claim.position for claim in hand.claimed.values()] == [40_001]
    assert_no_scan(found)


def test_burying_a_worker_reads_its_running_samples_from_their_index(
    large: tuple[Scene, PartitionId],
) -> None:
    scene, partition_id = large
    hand = scene.hand(partition_id)
    hand.claim(64)

    running = plans(scene, lambda: repairs.running_attempts(scene.ledger, hand.worker_id))
    bury = plans(scene, hand.die)

    assert all("ix_sample_running" in plan for plan in running.values())
    assert "ix_sample_running" in plan_with(bury, "UPDATE sample")
    assert_no_scan(bury)


def test_leaving_reads_running_samples_from_their_index(large: tuple[Scene, PartitionId]) -> None:
    scene, partition_id = large
    hand = scene.hand(partition_id)

    found = plans(scene, lambda: workers.deregister(scene.ledger, hand.worker_id, "test", NOW))

    assert "ix_sample_running" in plan_with(found, "count(*) FROM sample")
    assert_no_scan(found)


def test_the_latest_lengths_are_read_from_their_index(large: tuple[Scene, PartitionId]) -> None:
    scene, partition_id = large

    found = plans(scene, lambda: samples.recent_lengths(scene.ledger, partition_id))

    assert "ix_sample_kept" in plan_with(found, "output_tokens FROM sample")
    assert_no_scan(found)


def test_a_tick_touches_its_own_rows_only(large: tuple[Scene, PartitionId]) -> None:
    scene, partition_id = large
    hand = scene.hand(partition_id)
    hand.claim(8)

    found = plans(scene, lambda: _busy_tick(hand))

    assert_no_scan(found)


def _busy_tick(hand: Hand) -> None:
    first, second, third, fourth, *_ = hand.claimed.values()
    hand.gain(first, numbers(5))
    hand.keep(second, unsaved=[1])
    hand.put_back(third, [1], start_over=True)
    hand.fail(fourth)
