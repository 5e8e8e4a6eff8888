"""Percent, remaining tokens and time left."""

from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.estimate import (
    Estimate,
    Left,
    Remaining,
    Speed,
    Unknown,
    estimate,
    percent,
    remaining_tokens,
)
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
    assert estimate(remaining, Speed(tokens_per_s=0, observed_s=0)) == Estimate(
        low_s=0.0, mid_s=0.0, high_s=0.0
    )


def test_prg_01_after_a_resume_it_is_estimating_until_there_is_enough() -> None:
    what = Left(counts=Counts(pending=99, running=1, ok=900), started_tokens=(0,))
    answers = Lengths.learn(finished=[3] * 900, running=[0], cap=512)
    remaining = remaining_tokens(what, answers)

    at_once = estimate(remaining, Speed(tokens_per_s=900.0, observed_s=1.0))
    later = estimate(remaining, Speed(tokens_per_s=3.0, observed_s=15.0))

    assert isinstance(at_once, Unknown)
    assert "estimating" in at_once.why
    assert isinstance(later, Estimate)
    assert 75 <= later.mid_s <= 125


def test_too_few_answers_are_no_estimate() -> None:
    remaining = remaining_tokens(Left(counts=Counts(pending=9, ok=4)), learnt(4))

    assert remaining == Unknown(why="estimating: 4 of 5 answers have ended")
    assert estimate(remaining, Speed(tokens_per_s=9, observed_s=99)) == remaining


@pytest.mark.parametrize("tokens_per_s", [0.0, -1.0, 1e-300])
def test_prg_03_without_speed_it_is_unknown(tokens_per_s: float) -> None:
    speed = Speed(tokens_per_s=tokens_per_s, observed_s=600)

    assert isinstance(estimate(Remaining(tokens=1e7), speed), Unknown)


def test_the_range_is_wider_where_less_is_known() -> None:
    speed, counts = Speed(tokens_per_s=10, observed_s=60), Counts(pending=1000, ok=5)

    def width(n: int) -> float:
        answers = Lengths.learn(finished=[50, 150] * n, running=[], cap=1000)
        value = estimate(remaining_tokens(Left(counts=counts), answers), speed)
        assert isinstance(value, Estimate)
        return value.high_s / value.low_s

    assert 1 < width(500) < width(5)


@given(
    counts=COUNTS,
    finished=st.lists(st.integers(0, 1000), max_size=20),
    started=st.lists(st.integers(0, 1500), max_size=20),
    goal=st.none() | NUMBERS,
    budget=st.none() | NUMBERS,
    speed=st.builds(
        Speed,
        tokens_per_s=st.floats(0, 1e6),
        observed_s=st.floats(0, 1e6),
        deviation_tokens_per_s=st.floats(0, 1e6),
    ),
)
def test_an_estimate_is_finite_ordered_and_never_negative(
    counts: Counts,
    finished: list[int],
    started: list[int],
    goal: int | None,
    budget: int | None,
    speed: Speed,
) -> None:
    what = Left(
        counts=counts,
        started_tokens=started,
        goal_samples=goal,
        budget_tokens=budget,
        used_tokens=sum(started),
    )

    value = estimate(
        remaining_tokens(what, Lengths.learn(finished=finished, running=started, cap=1000)), speed
    )

    if isinstance(value, Unknown):
        assert value.why
    else:
        assert 0 <= value.low_s <= value.mid_s <= value.high_s
        assert isfinite(value.high_s)
