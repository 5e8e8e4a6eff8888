"""Runs: moved only as the table of states allows, and removed only while nothing was answered."""

import pytest

from app.core.states import RUN_MOVES, RunState, SampleState
from app.core.types import PartitionId, RunId
from app.errors import ConflictError, NotFoundError
from app.ledger import activity, intake_rows, runs, workers
from app.ledger.activity import Deed
from tests.ledger.hand import NOW, URL
from tests.ledger.scene import Part, Scene

EVENTS = sorted({event for _, event in RUN_MOVES})


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", RunState)
def test_a_run_moves_as_its_table_says_or_not_at_all(
    scene: Scene, state: RunState, event: str
) -> None:
    run_id = scene.run_id(scene.one())
    scene.sql("UPDATE run SET state = :state", state=state)
    deed = Deed(who="operator", event=event, detail="because", run_id=run_id)
    target = RUN_MOVES.get((state, event))
    before = activity.latest(scene.ledger, run_id)

    if target is None:
        with pytest.raises(ConflictError, match=f"{state}.*{event}"):
            runs.move_run(scene.ledger, run_id, event, deed, NOW)
        assert activity.latest(scene.ledger, run_id) == before
        assert runs.get_run(scene.ledger, run_id).state is state
        return

    assert runs.move_run(scene.ledger, run_id, event, deed, NOW) is target
    view = runs.get_run(scene.ledger, run_id)
    assert (view.state, view.reason) == (target, "because")
    assert activity.latest(scene.ledger, run_id)[0].event == event


def test_what_is_not_there_is_named() -> None:
    assert EVENTS == ["nothing left", "pause", "resume", "stop", "workers gone"]


def test_asking_for_what_is_not_there_names_it(scene: Scene) -> None:
    deed = Deed(who="operator", event="pause")

    with pytest.raises(NotFoundError, match="run 77"):
        runs.get_run(scene.ledger, RunId(77))
    with pytest.raises(NotFoundError, match="run 77"):
        runs.move_run(scene.ledger, RunId(77), "pause", deed, NOW)
    with pytest.raises(NotFoundError, match="partition 77"):
        runs.get_partition(scene.ledger, PartitionId(77))


def test_runs_are_listed_newest_first(scene: Scene) -> None:
    scene.run(Part(), name="old")
    scene.run(Part(), name="new")

    assert [view.name for view in runs.list_runs(scene.ledger)] == ["new", "old"]


def test_a_run_that_never_began_is_removed_with_all_its_rows(scene: Scene) -> None:
    """One partition's worker may have started before another's prompts turned out unusable."""
    first, second = scene.run(Part(name="a"), Part(name="b"), name="bad")
    kept = scene.run(Part(), name="good")[0]
    hand = scene.hand(first)
    scene.sql("INSERT INTO server (url, facts_json) VALUES (:url, '{}')", url=URL)
    (server,) = scene.rows("SELECT id FROM server")
    scene.sql(
        "INSERT INTO share VALUES (:worker, :server, 3)", worker=hand.worker_id, server=server[0]
    )
    hand.put_back(hand.one(), charged=True, reason="timeout")
    hand.keep(hand.one(), SampleState.EMPTY)  # an answer without a token, yet measured

    runs.delete_run(scene.ledger, scene.run_id(first))

    assert [view.name for view in runs.list_runs(scene.ledger)] == ["good"]
    assert scene.rows("SELECT DISTINCT partition_id FROM sample") == [(kept,)]
    assert scene.rows("SELECT count(*) FROM attempt") == [(0,)]
    assert scene.rows("SELECT count(*) FROM measure") == [(0,)]
    assert workers.living(scene.ledger) == []
    assert second > first


def test_a_run_with_answers_is_not_removed(scene: Scene) -> None:
    partition_id = scene.one()
    hand = scene.hand(partition_id)
    hand.gain(hand.one(), [1])

    with pytest.raises(ConflictError, match="has answers"):
        runs.delete_run(scene.ledger, scene.run_id(partition_id))

    scene.check()


def test_a_scan_that_died_begins_again_from_nothing(scene: Scene) -> None:
    partition_id = scene.one(n=0)
    scene.sql("UPDATE partition SET intake = 'scanning'")
    rows = [
        (k, k, 0, f"row{k}", state, "sha", None, None, None)
        for k, state in enumerate(["pending", "rejected", "pending"])
    ]
    intake_rows.insert_many(scene.ledger, partition_id, rows)
    scene.check()

    intake_rows.empty_partition(scene.ledger, partition_id)

    assert scene.view(partition_id).counts.total == 0
    scene.check()
    intake_rows.insert_many(scene.ledger, partition_id, rows)
    assert scene.view(partition_id).counts.total == 3


def test_a_scan_that_ended_is_not_emptied(scene: Scene) -> None:
    partition_id = scene.one(n=3)

    with pytest.raises(ConflictError, match="tokenized"):
        intake_rows.empty_partition(scene.ledger, partition_id)

    assert scene.view(partition_id).counts.total == 3


def test_samples_refused_at_tokenization_are_rejected_with_a_reason(scene: Scene) -> None:
    partition_id = scene.one(n=3)
    scene.sql("UPDATE sample SET claim_rank = NULL")
    first, second, third = intake_rows.untokenized(scene.ledger, partition_id, -1, 9)
    fit = intake_rows.Tokenized(
        sample_id=first.sample_id, prompt_tokens=4, token_offset=40, max_new_tokens=9
    )
    refused = intake_rows.Refused(sample_id=third.sample_id, reason="too long", prompt_tokens=99)

    intake_rows.record_tokens(scene.ledger, partition_id, [fit], [refused], 44)

    counts = scene.view(partition_id).counts
    assert (counts.pending, counts.rejected) == (2, 1)
    assert scene.view(partition_id).token_file_tokens == 44
    waiting = intake_rows.untokenized(scene.ledger, partition_id, -1, 9)
    assert [row.sample_id for row in waiting] == [second.sample_id]
    claim = scene.hand(partition_id).one()
    assert (claim.token_offset, claim.prompt_tokens, claim.max_new_tokens) == (40, 4, 9)
    scene.check()
