"""Which partition is to have a worker, with what order and what share."""

import doctest
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import supervision
from app.core.spec import ClassSpec, Order, RunSpec
from app.core.states import PartitionState, RunState
from app.core.supervision import Want, Wanted, backoff_after, is_run_over, wanted_workers
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.core.views import PartitionView

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = RunSpec(
    name="r",
    server_urls=("http://a",),
    prompts_dir="-",
    output_dir="-",
    classes={
        "short": ClassSpec(concurrency=150, max_new_tokens=100),
        "long": ClassSpec(concurrency=32, max_new_tokens=1000),
    },
)
IN_SEQUENCE = replace(SPEC, order=Order.SEQUENCE)


def part(number: int, class_name: str = "short", **facts: object) -> PartitionView:
    return with_facts(number, class_name, facts)


def with_facts(number: int, class_name: str, facts: dict[str, object]) -> PartitionView:
    made = PartitionView(
        id=PartitionId(number),
        run_id=RunId(1),
        name=f"p{number}",
        class_name=class_name,
        state=PartitionState.ACTIVE,
        state_since=NOW,
        reason="",
        prompts_path="-",
        intake="tokenized",
        own_concurrency=None,
        token_budget=None,
        goal_samples=None,
        max_new_tokens=100,
        counts=Counts(pending=1000),
        tokens=Tokens(),
        reserved_tokens=0,
        n_tokenized=1000,
        token_file_tokens=0,
        budget_reached=False,
        sealed_at=None,
    )
    return replace(made, **facts)  # type: ignore[arg-type]  # the test's own facts


def wanted(*partitions: PartitionView, spec: RunSpec = SPEC) -> list[Wanted]:
    return list(wanted_workers(RunState.RUNNING, spec, partitions).values())


def orders(*partitions: PartitionView, spec: RunSpec = SPEC) -> list[str]:
    return [each.want for each in wanted(*partitions, spec=spec)]


def shares(*partitions: PartitionView, spec: RunSpec = SPEC) -> list[int]:
    return [each.share for each in wanted(*partitions, spec=spec)]


def test_active_partitions_work_together_and_share_their_class() -> None:
    assert wanted(part(1), part(2), part(3, "long")) == [
        Wanted(want=Want.WORK, share=75),
        Wanted(want=Want.WORK, share=75),
        Wanted(want=Want.WORK, share=32),
    ]


def test_what_waits_for_earlier_turns_takes_no_share_from_others() -> None:
    talks = part(1, counts=Counts(running=3, pending=60), n_waiting=60)
    begun = part(3, counts=Counts(running=0, pending=60), n_waiting=40)
    due = part(4, counts=Counts(pending=2), n_waiting=2)

    assert shares(talks, part(2)) == [7, 143]
    assert shares(begun, part(2)) == [21, 129]
    assert shares(due, part(2)) == [1, 149]


@pytest.mark.parametrize("state", [each for each in RunState if each is not RunState.RUNNING])
def test_a_run_that_does_not_run_wants_nobody(state: RunState) -> None:
    found = wanted_workers(state, SPEC, [part(1), part(2, state=PartitionState.PAUSED)])

    assert set(found.values()) == {Wanted(want=Want.STOP, share=0)}


@pytest.mark.parametrize("state", [each for each in RunState if each is not RunState.RUNNING])
def test_what_drains_is_finished_only_before_a_stop(state: RunState) -> None:
    found = wanted_workers(state, SPEC, [part(1, state=PartitionState.DRAINING)])

    is_asked_to_finish = state is RunState.STOPPING
    assert [each.want for each in found.values()] == [
        Want.DRAIN if is_asked_to_finish else Want.STOP
    ]


@pytest.mark.parametrize(
    ("facts", "want"),
    [
        ({"state": PartitionState.PAUSED}, Want.STOP),
        ({"state": PartitionState.DRAINING}, Want.DRAIN),
        ({"intake": "scanning"}, Want.STOP),
        ({"intake": "scanned"}, Want.WORK),
        ({"counts": Counts(ok=5)}, Want.STOP),
        ({"counts": Counts(ok=5, running=1)}, Want.WORK),
        ({"counts": Counts(ok=5, pending=9), "goal_samples": 5}, Want.STOP),
        ({"counts": Counts(ok=4, pending=9), "goal_samples": 5}, Want.WORK),
        ({"budget_reached": True}, Want.STOP),
        ({"budget_reached": True, "counts": Counts(pending=9, running=2)}, Want.WORK),
        ({"state": PartitionState.DRAINING, "counts": Counts(ok=5)}, Want.STOP),
    ],
)
def test_what_a_partition_is_decides_its_order(facts: dict[str, object], want: Want) -> None:
    assert orders(with_facts(1, "short", facts)) == [want]


def test_in_sequence_the_first_of_each_class_has_its_turn() -> None:
    partitions = (part(1), part(2), part(3, "long"), part(4, "long"))

    assert orders(*partitions, spec=IN_SEQUENCE) == ["work", "stop", "work", "stop"]
    assert shares(*partitions, spec=IN_SEQUENCE) == [150, 0, 32, 0]


@pytest.mark.parametrize(
    "first", [{"counts": Counts(ok=5)}, {"state": PartitionState.PAUSED}, {"intake": "scanning"}]
)
def test_in_sequence_one_that_is_over_or_paused_gives_its_turn_away(
    first: dict[str, object],
) -> None:
    partitions = (with_facts(1, "short", first), part(2), part(3))

    assert orders(*partitions, spec=IN_SEQUENCE) == ["stop", "work", "stop"]


def test_a_drained_partition_takes_only_what_it_has_in_flight() -> None:
    draining = part(1, state=PartitionState.DRAINING, counts=Counts(pending=1000, running=10))

    assert shares(draining, part(2)) == [10, 140]


def test_near_its_goal_a_partition_leaves_its_share_to_the_others() -> None:
    nearly = part(1, goal_samples=100, counts=Counts(pending=900, ok=90, running=6))

    assert shares(nearly, part(2)) == [10, 140]


def test_a_concurrency_set_by_hand_is_kept_and_the_rest_shared() -> None:
    assert shares(part(1, own_concurrency=100), part(2), part(3)) == [100, 25, 25]


def test_a_paused_partition_gives_its_share_back() -> None:
    assert shares(part(1, state=PartitionState.PAUSED), part(2)) == [0, 150]


PARTS = st.builds(
    lambda number, class_name, state, intake, own, goal, numbers, reached: part(
        number,
        class_name,
        state=state,
        intake=intake,
        own_concurrency=own,
        goal_samples=goal,
        counts=Counts(pending=numbers[0], running=numbers[1], ok=numbers[2]),
        budget_reached=reached,
    ),
    st.integers(1, 9),
    st.sampled_from(["short", "long"]),
    st.sampled_from(PartitionState),
    st.sampled_from(["scanning", "scanned", "tokenized"]),
    st.none() | st.integers(0, 40),
    st.none() | st.integers(0, 500),
    st.tuples(st.integers(0, 300), st.integers(0, 60), st.integers(0, 300)),
    st.booleans(),
)


@given(
    partitions=st.lists(PARTS, max_size=8, unique_by=lambda each: each.id),
    run_state=st.sampled_from(RunState),
    spec=st.sampled_from([SPEC, IN_SEQUENCE]),
)
def test_shares_stay_within_the_class_and_go_only_where_a_worker_is_wanted(
    partitions: list[PartitionView], run_state: RunState, spec: RunSpec
) -> None:
    found = wanted_workers(run_state, spec, partitions)

    assert list(found) == [each.id for each in partitions]
    assert all(each.share == 0 for each in found.values() if each.want is Want.STOP)
    for name, limits in spec.classes.items():
        members = [each for each in partitions if each.class_name == name]
        shared = sum(found[each.id].share for each in members if each.own_concurrency is None)
        by_hand = sum(each.own_concurrency or 0 for each in members)
        total = sum(found[each.id].share for each in members)
        assert shared <= limits.concurrency
        assert total <= max(limits.concurrency, by_hand)
    if spec.order is Order.SEQUENCE:
        working = [each for each in partitions if found[each.id].want is Want.WORK]
        assert len({each.class_name for each in working}) == len(working)


def test_backoff_grows_to_a_bound_and_never_falls() -> None:
    waits = [backoff_after(n) for n in range(200)]

    assert waits == sorted(waits)
    assert waits[0] == 0
    assert waits[-1] == 30


def test_a_run_is_over_when_all_is_done_sealed_and_left() -> None:
    done = part(1, counts=Counts(ok=5), sealed_at=NOW)
    assert is_run_over([done], {})

    assert not is_run_over([replace(done, sealed_at=None)], {})
    assert not is_run_over([done], {done.id: object()})
    assert not is_run_over([done, part(2)], {})
    assert not is_run_over([replace(done, intake="scanning")], {})


def test_the_examples_are_true() -> None:
    assert doctest.testmod(supervision).failed == 0
