"""Percent and remaining tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.estimate import Left, Remaining, Unknown, percent, remaining_tokens
from app.core.lengths import Lengths
from app.core.types import Counts

NUMBERS = st.integers(0, 10**7)
COUNTS = st.builds(
    Counts,
    pending=NUMBERS,
    running=NUMBERS,
    ok=NUMBERS,
    truncated=NUMBERS,
    empty=NUMBERS,
    suspect=NUMBERS,
    failed=NUMBERS,
    rejected=NUMBERS,
)


def learnt(n: int = 50, length: int = 100) -> Lengths:
    return Lengths.learn(finished=[length] * n, running=[], cap=1000)


def left(remaining: Remaining | Unknown) -> Remaining:
    assert isinstance(remaining, Remaining)
    return remaining


@given(counts=COUNTS)
def test_prg_02_percent_is_0_to_100_and_100_only_when_nothing_is_left(counts: Counts) -> None:
    value = percent(counts)

    assert 0 <= value <= 100
    assert (value == 100) is (counts.pending + counts.running == 0)


def test_percent_rounds_down() -> None:
    assert percent(Counts(ok=199_999, running=1)) == 99
    assert percent(Counts(ok=1, failed=1, rejected=1, pending=997)) == 0
    assert percent(Counts()) == 100


def test_rejected_samples_are_not_done_and_not_wanted() -> None:
    assert percent(Counts(ok=10, rejected=900, pending=90)) == 10
    assert percent(Counts(ok=10, failed=10, rejected=900, pending=90), goal_samples=20) == 50
    assert percent(Counts(ok=93), goal_samples=50) == 100


def test_remaining_counts_pending_whole_and_started_ones_by_what_they_lack() -> None:
    what = Left(counts=Counts(pending=10, running=2, ok=50), started_tokens=(30, 60))

    assert left(remaining_tokens(what, learnt())).tokens == pytest.approx(10 * 100 + 70 + 40)


def test_a_goal_leaves_out_the_samples_that_it_does_not_need() -> None:
    what = Left(
        counts=Counts(pending=1000, running=2, ok=50), started_tokens=(30, 60), goal_samples=55
    )

    assert left(remaining_tokens(what, learnt())).tokens == pytest.approx(3 * 100 + 70 + 40)


def test_a_budget_bounds_what_is_left() -> None:
    what = Left(counts=Counts(pending=1000, ok=50), budget_tokens=6000, used_tokens=5000)

    assert left(remaining_tokens(what, learnt())) == Remaining(tokens=1000.0)


@pytest.mark.parametrize(
    "what",
    [
        Left(counts=Counts(ok=5)),
        Left(counts=Counts(pending=9, ok=5), goal_samples=5),
        Left(counts=Counts(pending=9, ok=5), goal_samples=3),
    ],
)
def test_nothing_left_is_known_without_any_answer(what: Left) -> None:
    remaining = remaining_tokens(what, Lengths.learn(finished=[], running=[], cap=10))

    assert remaining == Remaining(tokens=0.0)


def test_too_few_answers_are_no_estimate() -> None:
    remaining = remaining_tokens(Left(counts=Counts(pending=9, ok=4)), learnt(4))

    assert remaining == Unknown(why="estimating: 4 of 5 answers have ended")
