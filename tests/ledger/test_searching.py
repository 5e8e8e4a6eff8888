"""Samples found by their id, its beginning, or the number of their record."""

from app.core.states import SampleState
from app.core.types import PartitionId
from app.ledger import searching
from app.ledger.searching import Hits, neighbours
from tests.ledger.plans import explained, recorded, scans
from tests.ledger.scene import Part, Scene


def search(scene: Scene, partition_ids: list[PartitionId], q: str, **how: object) -> Hits:
    asked = {"state": None, "replicas": 1, "limit": 50, **how}
    return searching.search(scene.ledger, partition_ids, q, **asked)  # type: ignore[arg-type]  # as given


def found(scene: Scene, partition_id: PartitionId, q: str, **how: object) -> list[str]:
    return [each.key for each in search(scene, [partition_id], q, **how).samples]


def test_an_id_stands_before_those_that_begin_with_it(scene: Scene) -> None:
    partition_id = scene.one(n=12)

    assert found(scene, partition_id, "row1") == ["row1", "row10", "row11"]
    assert found(scene, partition_id, "row11") == ["row11"]
    assert found(scene, partition_id, "ow1") == []


def test_a_number_finds_its_record_and_every_copy_of_it(scene: Scene) -> None:
    partition_id = scene.one(n=12)
    scene.sql("UPDATE sample SET record_index = position / 3, replica = position % 3")

    assert found(scene, partition_id, "2", replicas=3) == ["row6", "row7", "row8"]
    assert found(scene, partition_id, "99999999999999999999") == []


def test_an_id_is_found_whatever_it_is_written_with(scene: Scene) -> None:
    partition_id = scene.one(n=2)
    for key in ("Größe/1", "日本", "\U0001f600", "a%_b", "'; --", " x"):
        scene.sql("UPDATE sample SET key = :key WHERE position = 1", key=f"{key}-long")
        assert found(scene, partition_id, key) == [f"{key}-long"]


def test_partitions_are_searched_together_and_states_told_apart(scene: Scene) -> None:
    first, second = scene.run(Part(name="a", n=2), Part(name="b", n=2))
    scene.sql("UPDATE sample SET state = 'failed' WHERE partition_id = :id", id=second)

    hits = search(scene, [first, second], "row1")
    assert [each.partition_id for each in hits.samples] == [first, second]
    only = search(scene, [first, second], "row1", state=SampleState.FAILED)
    assert [each.partition_id for each in only.samples] == [second]


def test_what_is_left_out_is_said(scene: Scene) -> None:
    partition_id = scene.one(n=5)

    assert search(scene, [partition_id], "row", limit=3).has_more
    assert not search(scene, [partition_id], "row", limit=5).has_more


def test_neighbours_are_those_in_input_order(scene: Scene) -> None:
    first, second = scene.run(Part(name="a", n=3), Part(name="b", n=1))
    (begin, middle, end, _) = (row[0] for row in scene.rows("SELECT id FROM sample ORDER BY id"))

    assert neighbours(scene.ledger, first, 1) == (begin, end)
    assert neighbours(scene.ledger, first, 0) == (None, middle)
    assert neighbours(scene.ledger, second, 0) == (None, None)


def test_a_search_is_one_range_of_the_index_of_keys(scene: Scene) -> None:
    partition_id = scene.one(n=50)

    with recorded(scene.ledger) as asked:
        search(scene, [partition_id], "7")
        neighbours(scene.ledger, partition_id, 7)

    assert scans(scene.ledger, asked) == {}
    plans = [step for steps in explained(scene.ledger, asked).values() for step in steps]
    assert any("ix_sample_key (partition_id=? AND key>? AND key<?)" in step for step in plans)
    assert not any("TEMP B-TREE" in step for step in plans)
