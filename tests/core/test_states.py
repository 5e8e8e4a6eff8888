"""The table of moves: whole, and closed."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.states import (
    KEPT,
    OPEN,
    PARTITION_MOVES,
    RETRYABLE,
    RUN_MOVES,
    SAMPLE_MOVES,
    PartitionState,
    RunState,
    SampleEvent,
    SampleState,
    may_move,
    sample_diagram,
)

S, E = SampleState, SampleEvent
MOVES = {
    S.PENDING: {
        E.CLAIM: S.RUNNING,
        E.REJECT: S.REJECTED,
        E.KEEP_OK: S.OK,
        E.KEEP_TRUNCATED: S.TRUNCATED,
        E.KEEP_EMPTY: S.EMPTY,
        E.KEEP_SUSPECT: S.SUSPECT,
    },
    S.RUNNING: {
        E.PUT_BACK: S.PENDING,
        E.FAIL: S.FAILED,
        E.KEEP_OK: S.OK,
        E.KEEP_TRUNCATED: S.TRUNCATED,
        E.KEEP_EMPTY: S.EMPTY,
        E.KEEP_SUSPECT: S.SUSPECT,
    },
    S.OK: {E.LOSE_LINE: S.PENDING},
    S.TRUNCATED: {E.LOSE_LINE: S.PENDING, E.EXTEND: S.PENDING},
    S.EMPTY: {E.LOSE_LINE: S.PENDING, E.RETRY: S.PENDING},
    S.SUSPECT: {E.LOSE_LINE: S.PENDING, E.RETRY: S.PENDING},
    S.FAILED: {E.RETRY: S.PENDING},
    S.REJECTED: {E.WAIT_AGAIN: S.PENDING},
}


@pytest.mark.parametrize(("state", "event"), list(product(SampleState, SampleEvent)))
def test_every_pair_of_state_and_event_leads_where_the_design_says(
    state: SampleState, event: SampleEvent
) -> None:
    assert SAMPLE_MOVES.get((state, event)) is MOVES[state].get(event)


@given(
    total=st.integers(1, 20),
    steps=st.lists(st.tuples(st.integers(0, 19), st.sampled_from(SampleEvent)), max_size=200),
)
def test_over_any_sequence_of_moves_the_states_sum_to_the_total(
    total: int, steps: list[tuple[int, SampleEvent]]
) -> None:
    samples, counters = [SampleState.PENDING] * total, Counter({SampleState.PENDING: total})

    for position, event in steps:
        before = samples[position % total]
        after = SAMPLE_MOVES.get((before, event))
        if after is not None:
            samples[position % total] = after
            counters[before] -= 1
            counters[after] += 1

    assert +counters == Counter(samples)
    assert counters.total() == total


def test_groups_lie_where_they_belong() -> None:
    assert not OPEN & (KEPT | RETRYABLE)
    assert set(SampleState) == OPEN | KEPT | {S.FAILED, S.REJECTED}


@pytest.mark.parametrize(("source", "target"), list(product(SampleState, SampleState)))
def test_a_sample_may_go_only_where_an_event_leads(
    source: SampleState, target: SampleState
) -> None:
    assert may_move(source, target) is (target in MOVES[source].values())


def test_the_picture_has_every_move_but_the_adoptions_of_recovery() -> None:
    lines = sample_diagram().splitlines()

    assert lines[:2] == ["stateDiagram-v2", "    [*] --> pending: intake"]
    assert "    pending --> running: claim" in lines
    assert "    truncated --> pending: extend" in lines
    assert len(lines) == 2 + len(SAMPLE_MOVES) - len(KEPT)


def test_every_run_state_but_the_first_can_be_reached_and_left() -> None:
    assert {state for state, _ in RUN_MOVES} == set(RunState)
    assert set(RUN_MOVES.values()) == set(RunState)


def test_a_stopped_and_a_finished_run_can_go_on() -> None:
    assert RUN_MOVES[RunState.STOPPED, "resume"] is RunState.RUNNING
    assert RUN_MOVES[RunState.FINISHED, "resume"] is RunState.RUNNING


def test_a_partition_can_be_paused_from_wherever_it_works_and_resumed() -> None:
    working = {PartitionState.ACTIVE, PartitionState.DRAINING}

    assert {PARTITION_MOVES[state, "pause"] for state in working} == {PartitionState.PAUSED}
    assert PARTITION_MOVES[PartitionState.PAUSED, "resume"] is PartitionState.ACTIVE
    assert PARTITION_MOVES[PartitionState.DRAINING, "resume"] is PartitionState.ACTIVE
    assert (PartitionState.PAUSED, "drain") not in PARTITION_MOVES
