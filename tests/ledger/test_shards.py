"""Shard rows: files are known before their first byte, and a seal points every line to one file."""

import pytest

from app.core.states import SampleState
from app.core.types import PartitionId, SampleId
from app.errors import LedgerError
from app.ledger import samples, shards
from app.ledger.activity import Deed
from app.ledger.shards import Sealed
from tests.ledger.hand import NOW, Hand, numbers
from tests.ledger.scene import Part, Scene


def answered(scene: Scene) -> tuple[PartitionId, Hand, list[SampleId]]:
    """Return a partition of four: two ok, one failed, one suspect that is to run again."""
    partition_id = scene.one(n=4)
    hand = scene.hand(partition_id)
    first, second, third, fourth = hand.claim(4)
    hand.keep(third, SampleState.SUSPECT, numbers(3))
    hand.keep(first, unsaved=numbers(1))
    hand.fail(second)
    hand.keep(fourth, unsaved=numbers(4))
    deed = Deed(who="operator", event="retry")
    samples.retry(scene.ledger, partition_id, [SampleState.SUSPECT], None, deed, NOW)
    return partition_id, hand, [first.sample_id, third.sample_id, fourth.sample_id]


def sealed(ids: list[SampleId]) -> Sealed:
    places = tuple((sample_id, 100 * k, 100) for k, sample_id in enumerate(ids))
    return Sealed(path="responses.jsonl", size_bytes=300, inode=9, places=places)


def test_valid_lines_come_in_input_order_retried_ones_included(scene: Scene) -> None:
    partition_id, hand, ids = answered(scene)

    found = shards.valid_lines(scene.ledger, partition_id, -1, 10)

    assert [position for position, _ in found] == [0, 2, 3]
    assert [place.sample_id for _, place in found] == ids
    assert [place.offset for _, place in found] == [10, 0, 20]
    assert {place.path for _, place in found} == {f"shard-{hand.worker_id}"}


def test_valid_lines_come_in_pages(scene: Scene) -> None:
    partition_id, _, _ = answered(scene)

    page = shards.valid_lines(scene.ledger, partition_id, 0, 1)

    assert [position for position, _ in page] == [2]


def test_a_seal_points_every_line_to_the_sealed_file(scene: Scene) -> None:
    partition_id, hand, ids = answered(scene)

    spare = shards.record_seal(scene.ledger, partition_id, sealed(ids), NOW)

    found = [place for _, place in shards.valid_lines(scene.ledger, partition_id, -1, 10)]
    assert [(place.path, place.offset, place.n_bytes) for place in found] == [
        ("responses.jsonl", 0, 100),
        ("responses.jsonl", 100, 100),
        ("responses.jsonl", 200, 100),
    ]
    assert [view.id for view in spare] == [hand.shard_id]
    (present,) = shards.present(scene.ledger, partition_id)
    assert (present.kind, present.committed_bytes, present.inode) == ("sealed", 300, 9)
    assert scene.view(partition_id).sealed_at == NOW.replace(microsecond=0)
    scene.check()


def test_a_sealed_over_shard_is_known_as_replaced(scene: Scene) -> None:
    partition_id, hand, ids = answered(scene)
    path = f"shard-{hand.worker_id}"
    assert not shards.is_replaced(scene.ledger, path)

    shards.record_seal(scene.ledger, partition_id, sealed(ids), NOW)

    assert shards.is_replaced(scene.ledger, path)
    assert not shards.is_replaced(scene.ledger, "somebody's file")


def test_sealing_again_replaces_the_first_seal_and_spares_its_own_path(scene: Scene) -> None:
    partition_id, _, ids = answered(scene)
    shards.record_seal(scene.ledger, partition_id, sealed(ids), NOW)

    spare = shards.record_seal(scene.ledger, partition_id, sealed(ids), NOW)

    assert spare == []  # the old seal had the same path: the file is the new one
    assert len(shards.present(scene.ledger, partition_id)) == 1


def test_a_partition_that_runs_again_is_not_sealed(scene: Scene) -> None:
    partition_id, hand, ids = answered(scene)
    hand.one()
    before = scene.everything()

    with pytest.raises(LedgerError, match="runs again"):
        shards.record_seal(scene.ledger, partition_id, sealed(ids), NOW)

    assert scene.everything() == before


def test_a_partition_without_a_line_is_sealed_too(scene: Scene) -> None:
    partition_id = scene.one(n=0)

    assert shards.record_seal(scene.ledger, partition_id, sealed([]), NOW) == []

    assert scene.view(partition_id).sealed_at is not None


def test_another_partitions_files_are_left_alone(scene: Scene) -> None:
    partition_id, _, ids = answered(scene)
    stranger = scene.hand(scene.run(Part(n=2), name="other")[0])
    stranger.keep(stranger.one(), unsaved=numbers(2))

    shards.record_seal(scene.ledger, partition_id, sealed(ids), NOW)

    (present,) = shards.present(scene.ledger, stranger.partition_id)
    assert (present.kind, present.id) == ("shard", stranger.shard_id)


def test_a_retried_line_of_a_sealed_file_is_replaced_in_a_new_shard(scene: Scene) -> None:
    partition_id, hand, ids = answered(scene)
    shards.record_seal(scene.ledger, partition_id, sealed(ids), NOW)
    heir = scene.hand(partition_id)
    hand.die()

    heir.keep(heir.one(), unsaved=numbers(9))

    found = [place for _, place in shards.valid_lines(scene.ledger, partition_id, -1, 10)]
    assert [place.path for place in found] == [
        "responses.jsonl",
        f"shard-{heir.worker_id}",
        "responses.jsonl",
    ]
    tokens = scene.view(partition_id).tokens
    assert (tokens.kept, tokens.wasted) == (14, 3)
    scene.check()
