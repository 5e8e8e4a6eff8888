"""Snapshot rows: stored together with what was noted, read by time, answered from their index."""

import pytest

from app.core.types import RunId
from app.errors import LedgerError
from app.ledger import activity, snapshots
from app.ledger.activity import Deed
from app.ledger.snapshots import Snapshot, Surplus
from tests.ledger.hand import NOW
from tests.ledger.scene import Part, Scene
from tests.ledger.test_plans import plans


def row(run_id: RunId, at_ms: int) -> Snapshot:
    return Snapshot(run_id=run_id, at_ms=at_ms, figures_json=f'{{"n": {at_ms}}}')


def test_rows_are_read_by_run_and_time(scene: Scene) -> None:
    run_id = scene.run_id(scene.one())
    other = scene.run_id(scene.run(Part(), name="other")[0])
    snapshots.record(scene.ledger, [row(run_id, at) for at in (30, 10, 20)])
    snapshots.record(scene.ledger, [row(other, 15)])

    found = snapshots.between(scene.ledger, run_id, 10, 30)

    assert found == [row(run_id, 10), row(run_id, 20)]
    assert snapshots.between(scene.ledger, run_id, 0, 99, limit=1) == [row(run_id, 10)]
    assert snapshots.latest(scene.ledger, run_id) == row(run_id, 30)
    assert snapshots.latest(scene.ledger, RunId(99)) is None


def test_rows_entries_and_what_goes_are_one_transaction(scene: Scene) -> None:
    run_id = scene.run_id(scene.one())
    snapshots.record(scene.ledger, [row(run_id, 10), row(run_id, 20)])
    deed = Deed(who="system", event="stalled", detail="no token", run_id=run_id)
    surplus = Surplus(run_id=run_id, moments_ms=[10])

    with pytest.raises(LedgerError):
        snapshots.record(scene.ledger, [row(RunId(99), 40)], [(deed, NOW)], surplus)
    assert len(snapshots.between(scene.ledger, run_id, 0, 99)) == 2

    snapshots.record(scene.ledger, [row(run_id, 30)], [(deed, NOW)], surplus)

    assert [each.at_ms for each in snapshots.between(scene.ledger, run_id, 0, 99)] == [20, 30]
    (entry,) = activity.newest_of(scene.ledger, run_id, "system", ["stalled", "disk low"])
    assert (entry.event, entry.detail, entry.at) == ("stalled", "no token", NOW)


def test_of_each_event_the_newest_entry_is_found(scene: Scene) -> None:
    run_id = scene.run_id(scene.one())
    for who, detail in (("system", "first"), ("system", "second"), ("operator", "third")):
        deed = Deed(who=who, event="stalled", detail=detail, run_id=run_id)
        activity.add(scene.ledger, deed, NOW)

    (found,) = activity.newest_of(scene.ledger, run_id, "system", ["stalled"])

    assert found.detail == "second"


def test_of_each_partition_the_newest_entry_is_found(scene: Scene) -> None:
    partition_id = scene.one()
    run_id = scene.run_id(partition_id)
    for of, detail in ((None, "whole"), (partition_id, "first"), (partition_id, "second")):
        deed = Deed(who="system", event="slow", detail=detail, run_id=run_id, partition_id=of)
        activity.add(scene.ledger, deed, NOW)

    found = activity.newest_of(scene.ledger, run_id, "system", ["slow"])

    assert {(one.partition_id, one.detail) for one in found} == {
        (None, "whole"),
        (partition_id, "second"),
    }


def test_every_statement_goes_by_the_index(scene: Scene) -> None:
    run_id = scene.run_id(scene.one())
    surplus = Surplus(run_id=run_id, moments_ms=[1, 2, 3])

    def all_of_them() -> None:
        snapshots.record(scene.ledger, [row(run_id, 10)], (), surplus)
        snapshots.between(scene.ledger, run_id, 0, 99)
        snapshots.latest(scene.ledger, run_id)

    found = {
        sql: plan for sql, plan in plans(scene, all_of_them).items() if "snapshot WHERE" in sql
    }

    assert len(found) == 3
    assert all("ix_snapshot_series (run_id=?" in plan for plan in found.values())
    assert not any("SCAN" in plan or "TEMP B-TREE" in plan for plan in found.values())
