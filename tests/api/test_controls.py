"""What people do to a run: every order against a real ledger, old and new noted."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from app import controls, limiting
from app.controls import Which
from app.core.states import PartitionState, RunState, SampleState
from app.errors import ConflictError, InputError, NotFoundError
from app.ledger import activity, runs, shards
from app.ledger.activity import Deed
from app.ledger.counters import recount
from app.ledger.orders import drained
from app.ledger.shards import Sealed
from tests.api.home import Home

NOW = datetime(2024, 5, 1, tzinfo=UTC)
WHO = "operator"


def finish(home: Home) -> None:
    """Seal every partition and end the run, as the supervisor does."""
    home.leave()
    for partition in runs.partitions_of(home.ledger, home.run_id):
        path = str(home.output_dir / partition.name / "responses.jsonl")
        sealed = Sealed(path=path, size_bytes=0, inode=0, places=())
        shards.record_seal(home.ledger, partition.id, sealed, NOW)
    deed = Deed(who="system", event="nothing left", run_id=home.run_id)
    runs.move_run(home.ledger, home.run_id, "nothing left", deed, NOW)


def entries(home: Home) -> list[tuple[str, str, str]]:
    return [(one.who, one.event, one.detail) for one in activity.latest(home.ledger, home.run_id)]


def test_the_only_live_run_need_not_be_named(home: Home) -> None:
    assert controls.find_run(home.ledger).id == home.run_id


def test_a_finished_run_is_not_taken_while_another_is_live(home: Home) -> None:
    finish(home)
    second = home.add_run("second")
    assert controls.find_run(home.ledger).id == second


def test_the_only_run_is_found_after_its_end(home: Home) -> None:
    finish(home)
    assert controls.find_run(home.ledger).id == home.run_id


def test_of_two_live_runs_one_must_be_named(home: Home) -> None:
    home.add_run("second")
    with pytest.raises(NotFoundError) as caught:
        controls.find_run(home.ledger)
    assert '"night" (running)' in caught.value.hint
    assert '"second" (running)' in caught.value.hint


def test_a_number_wins_over_a_name_that_looks_like_one(home: Home) -> None:
    home.add_run("1")
    assert controls.find_run(home.ledger, "1").id == home.run_id


def test_pause_without_names_pauses_the_run_and_leaves_partitions(home: Home) -> None:
    done = controls.pause(home.ledger, home.run, (), who=WHO, now=NOW)
    assert home.run.state is RunState.PAUSED
    assert home.partition("B1_chat").state is PartitionState.ACTIVE
    assert [(c.target, c.old, c.new) for c in done.changes] == [("run", "running", "paused")]
    assert entries(home)[0][:2] == (WHO, "pause")


def test_pausing_twice_is_refused(home: Home) -> None:
    controls.pause(home.ledger, home.run, (), who=WHO, now=NOW)
    with pytest.raises(ConflictError, match="paused"):
        controls.pause(home.ledger, home.run, (), who=WHO, now=NOW)


def test_drain_without_names_drains_what_is_active(home: Home) -> None:
    controls.pause(home.ledger, home.run, ["B1_chat"], who=WHO, now=NOW)
    done = controls.drain(home.ledger, home.run, (), who=WHO, now=NOW)
    assert [change.target for change in done.changes] == ["B2_code"]
    assert home.partition("B1_chat").state is PartitionState.PAUSED
    with pytest.raises(ConflictError, match="no active partition"):
        controls.drain(home.ledger, home.run, (), who=WHO, now=NOW)


def test_a_paused_run_cannot_drain(home: Home) -> None:
    controls.pause(home.ledger, home.run, (), who=WHO, now=NOW)
    with pytest.raises(ConflictError, match="paused"):
        controls.drain(home.ledger, home.run, ["B1_chat"], who=WHO, now=NOW)


def test_resume_of_the_run_leaves_what_was_paused_by_hand(home: Home) -> None:
    controls.pause(home.ledger, home.run, ["B1_chat"], who=WHO, now=NOW)
    controls.pause(home.ledger, home.run, (), who=WHO, now=NOW)
    controls.resume(home.ledger, home.run, (), who=WHO, now=NOW)
    assert home.run.state is RunState.RUNNING
    assert home.partition("B1_chat").state is PartitionState.PAUSED


def test_resume_of_a_running_run_resumes_all_its_partitions(home: Home) -> None:
    controls.pause(home.ledger, home.run, ["B1_chat", "B2_code"], who=WHO, now=NOW)
    controls.resume(home.ledger, home.run, (), who=WHO, now=NOW)
    assert home.partition("B1_chat").state is PartitionState.ACTIVE
    with pytest.raises(ConflictError, match="no partition of it is paused"):
        controls.resume(home.ledger, home.run, (), who=WHO, now=NOW)


def test_resume_where_only_what_was_paused_by_hand_is_left_goes_on_with_it(home: Home) -> None:
    """A partition that is over is active and does nothing: the order would have no effect."""
    home.keep("B1_chat", home.n_samples)
    controls.pause(home.ledger, home.run, ["B2_code"], who=WHO, now=NOW)
    controls.pause(home.ledger, home.run, (), who=WHO, now=NOW)
    controls.resume(home.ledger, home.run, (), who=WHO, now=NOW)
    assert home.partition("B1_chat").is_over
    assert home.partition("B2_code").state is PartitionState.ACTIVE


def test_resume_of_a_run_whose_partitions_all_drained_wakes_them(home: Home) -> None:
    controls.drain(home.ledger, home.run, (), who=WHO, now=NOW)
    for name in home.names:
        assert drained(home.ledger, home.partition(name).id, NOW)
    controls.pause(home.ledger, home.run, (), who=WHO, now=NOW)
    controls.resume(home.ledger, home.run, (), who=WHO, now=NOW)
    assert home.partition("B1_chat").state is PartitionState.ACTIVE


def test_what_was_resumed_in_time_is_not_drained_any_more(home: Home) -> None:
    controls.drain(home.ledger, home.run, ["B1_chat"], who=WHO, now=NOW)
    controls.resume(home.ledger, home.run, ["B1_chat"], who=WHO, now=NOW)
    assert not drained(home.ledger, home.partition("B1_chat").id, NOW)
    assert home.partition("B1_chat").state is PartitionState.ACTIVE


def test_stop_without_a_service_is_stopped_at_once_and_can_resume(home: Home) -> None:
    controls.stop(home.ledger, home.run, who=WHO, now=NOW, service_lives=False)
    assert home.run.state == "stopped"
    done = controls.resume(home.ledger, home.run, (), who=WHO, now=NOW)
    assert [change.new for change in done.changes] == [RunState.RUNNING]


def test_stop_waits_for_workers_that_stand_in_the_ledger(home: Home) -> None:
    home.claim("B1_chat", 1)
    controls.stop(home.ledger, home.run, who=WHO, now=NOW, service_lives=False)
    assert home.run.state is RunState.STOPPING


@pytest.mark.parametrize("n", [0, -1, 10_001])
def test_a_concurrency_out_of_bounds_is_refused(home: Home, n: int) -> None:
    with pytest.raises(InputError):
        limiting.set_concurrency(home.ledger, home.run, "B1_chat", n, who=WHO, now=NOW)
    assert home.partition("B1_chat").own_concurrency is None


def test_a_concurrency_is_given_back_to_the_class(home: Home) -> None:
    limiting.set_concurrency(home.ledger, home.run, "B1_chat", 5, who=WHO, now=NOW)
    done = limiting.set_concurrency(home.ledger, home.run, "B1_chat", None, who=WHO, now=NOW)
    assert home.partition("B1_chat").own_concurrency is None
    assert (done.changes[0].old, done.changes[0].new) == ("5", "share of its class")


def spent(home: Home, tokens: int) -> None:
    """Let B1_chat reach a budget of so many tokens with samples left, and the run end."""
    limiting.set_budget(home.ledger, home.run, "B1_chat", tokens, who=WHO, now=NOW)
    home.keep("B1_chat", 2, tokens=tokens // 2)
    assert home.claim("B1_chat", 4) == []
    home.keep("B2_code", 10)
    finish(home)
    assert home.partition("B1_chat").budget_reached


def test_a_higher_budget_opens_what_was_finished(home: Home) -> None:
    spent(home, 200)
    limiting.set_budget(home.ledger, home.run, "B1_chat", 1_000, who=WHO, now=NOW)
    partition = home.partition("B1_chat")
    assert not partition.budget_reached
    assert partition.sealed_at is None
    assert home.partition("B2_code").sealed_at is not None
    assert home.run.state is RunState.RUNNING
    assert (WHO, "budget", "B1_chat: 200 -> 1,000") in entries(home)


def test_a_budget_that_leaves_no_room_opens_nothing(home: Home) -> None:
    spent(home, 200)
    limiting.set_budget(home.ledger, home.run, "B1_chat", 150, who=WHO, now=NOW)
    assert home.partition("B1_chat").budget_reached
    assert home.run.state is RunState.FINISHED


def test_a_run_budget_opens_every_partition_that_it_stopped(home: Home) -> None:
    limiting.set_budget(home.ledger, home.run, None, 200, who=WHO, now=NOW)
    home.keep("B1_chat", 2, tokens=100)
    home.claim("B1_chat", 1)
    home.claim("B2_code", 1)
    finish(home)
    limiting.set_budget(home.ledger, home.run, None, None, who=WHO, now=NOW)
    assert home.run.state is RunState.RUNNING
    assert [home.partition(name).sealed_at for name in home.names] == [None, None]


def test_a_budget_does_not_open_what_its_goal_ended(home: Home) -> None:
    spent(home, 200)
    limiting.set_goal(home.ledger, home.run, "B1_chat", 2, who=WHO, now=NOW)
    limiting.set_budget(home.ledger, home.run, "B1_chat", 1_000, who=WHO, now=NOW)
    assert home.partition("B1_chat").sealed_at is not None
    assert home.run.state is RunState.FINISHED


def test_a_higher_goal_opens_what_was_finished(home: Home) -> None:
    limiting.set_goal(home.ledger, home.run, "B1_chat", 3, who=WHO, now=NOW)
    home.keep("B1_chat", 3)
    home.keep("B2_code", 10)
    finish(home)
    limiting.set_goal(home.ledger, home.run, "B1_chat", 5, who=WHO, now=NOW)
    assert home.partition("B1_chat").sealed_at is None
    assert home.run.state is RunState.RUNNING


def test_retry_takes_those_with_the_reason_and_reopens_the_run(home: Home) -> None:
    home.fail("B1_chat", 3, reason="HTTP 500: boom")
    home.fail("B1_chat", 2, reason="timed out")
    home.keep("B1_chat", 5)
    home.keep("B2_code", 10)
    finish(home)
    which = Which(partition="B1_chat", reason="500")
    done = controls.retry(home.ledger, home.run, which, who=WHO, now=NOW)
    counts = home.partition("B1_chat").counts
    assert (counts.pending, counts.failed) == (3, 2)
    assert home.run.state is RunState.RUNNING
    assert [change.target for change in done.changes] == ["B1_chat", "run"]
    assert recount(home.ledger, home.partition("B1_chat").id) == []


def test_retry_of_nothing_is_told(home: Home) -> None:
    with pytest.raises(ConflictError, match="nothing to try again"):
        controls.retry(home.ledger, home.run, Which(), who=WHO, now=NOW)


def test_retry_of_all_partitions_in_several_states(home: Home) -> None:
    home.fail("B1_chat", 1)
    home.fail("B2_code", 2)
    which = Which(states=(SampleState.FAILED, SampleState.EMPTY))
    done = controls.retry(home.ledger, home.run, which, who=WHO, now=NOW)
    assert [change.new for change in done.changes] == ["1 pending again", "2 pending again"]


def test_retry_says_that_a_used_budget_holds_the_samples_back(home: Home) -> None:
    home.fail("B1_chat", 1)
    with home.ledger.write() as connection:
        connection.execute(text("UPDATE partition SET budget_reached = true"))
    done = controls.retry(home.ledger, home.run, Which(), who=WHO, now=NOW)
    assert [change.new for change in done.changes] == [
        "1 pending again; its token budget is used up, raise it to send them"
    ]


def test_an_unknown_partition_is_told_with_the_choices(home: Home) -> None:
    with pytest.raises(NotFoundError) as caught:
        controls.retry(home.ledger, home.run, Which(partition="B9"), who=WHO, now=NOW)
    assert "B1_chat, B2_code" in caught.value.hint


def test_a_stop_that_finished_what_ran_gives_back_only_that(home: Home) -> None:
    controls.pause(home.ledger, home.run, ["B1_chat"], who=WHO, now=NOW)
    controls.stop(home.ledger, home.run, who=WHO, now=NOW, finish=True)
    assert drained(home.ledger, home.partition("B2_code").id, NOW)
    deed = Deed(who="system", event="workers gone", run_id=home.run_id)
    runs.move_run(home.ledger, home.run_id, "workers gone", deed, NOW)

    controls.resume(home.ledger, home.run, (), who=WHO, now=NOW)

    assert home.run.state is RunState.RUNNING
    assert home.partition("B2_code").state is PartitionState.ACTIVE
    assert home.partition("B1_chat").state is PartitionState.PAUSED  # by hand, and stays so
