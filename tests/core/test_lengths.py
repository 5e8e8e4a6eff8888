"""The length model: bounds, order, and the two cases that can be checked by hand."""

import statistics
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.lengths import Lengths
from benchmarks.server_model import lognormal_lengths

CAP = 1000
FINISHED = st.lists(st.integers(0, CAP), max_size=30)
RUNNING = st.lists(st.integers(0, CAP), max_size=30)


@given(finished=FINISHED, running=RUNNING, above=st.integers(0, CAP - 1))
def test_an_expected_length_is_above_what_is_there_and_within_the_cap(
    finished: list[int], running: list[int], above: int
) -> None:
    lengths = Lengths.learn(finished=finished, running=running, cap=CAP)

    assert above < lengths.expected(above) <= CAP


@given(finished=FINISHED, running=RUNNING, steps=st.sets(st.integers(0, 2 * CAP), min_size=2))
def test_a_longer_answer_is_never_expected_to_be_shorter(
    finished: list[int], running: list[int], steps: set[int]
) -> None:
    lengths = Lengths.learn(finished=finished, running=running, cap=CAP)

    for lower, higher in pairwise(sorted(steps)):
        assert lengths.expected(lower) <= lengths.expected(higher) + 1e-6


@given(finished=st.lists(st.integers(1, CAP), min_size=1, max_size=50), above=st.integers(0, CAP))
def test_with_nothing_running_it_is_the_mean_of_those_that_are_longer(
    finished: list[int], above: int
) -> None:
    lengths = Lengths.learn(finished=finished, running=[], cap=CAP)
    longer = [length for length in finished if length > above]

    assert lengths.n_finished == len(finished)
    assert lengths.expected() == pytest.approx(statistics.fmean(finished))
    assert lengths.deviation_tokens == pytest.approx(statistics.pstdev(finished), abs=1e-3)
    if longer:
        assert lengths.expected(above) == pytest.approx(statistics.fmean(longer))


@given(finished=st.lists(st.integers(1, CAP), min_size=1), running=RUNNING)
def test_answers_that_are_longer_already_never_lower_the_mean(
    finished: list[int], running: list[int]
) -> None:
    longer = [max(finished) + made for made in running]
    alone = Lengths.learn(finished=finished, running=[], cap=CAP)
    beside = Lengths.learn(finished=finished, running=longer, cap=CAP)

    assert beside.expected() >= alone.expected() - 1e-6


def test_censored_answers_by_hand() -> None:
    # at risk 4, 3 (one was cut from sight at 200), 1: S falls to 3/4, then 3/8, then 0
    lengths = Lengths.learn(finished=[100, 300, 500], running=[200], cap=CAP)

    assert lengths.expected() == pytest.approx(100 + 0.75 * 200 + 0.375 * 200)
    assert lengths.expected(300) == pytest.approx(500)


def test_an_answer_that_ended_counts_before_one_that_is_just_as_long_and_runs() -> None:
    lengths = Lengths.learn(finished=[100, 300], running=[100], cap=CAP)

    assert lengths.expected(99) == pytest.approx(100 + 2 / 3 * 200)


def test_past_the_last_finished_length_it_falls_like_the_upper_part_and_ends_at_the_cap() -> None:
    random = Random(4)
    true = [min(CAP, max(1, int(random.expovariate(1 / 200)))) for _ in range(4000)]
    seen = [length for length in true if length <= 400]
    running = [400] * (len(true) - len(seen))

    lengths = Lengths.learn(finished=seen, running=running, cap=CAP)

    assert lengths.expected() == pytest.approx(statistics.fmean(true), rel=0.05)
    assert lengths.expected(900) == pytest.approx(900 + 79, rel=0.01)


def test_the_cap_is_an_atom() -> None:
    lengths = Lengths.learn(finished=[100, CAP, CAP, CAP], running=[], cap=CAP)

    assert lengths.expected(100) == CAP
    assert lengths.expected(CAP) == CAP
    assert lengths.expected(CAP + 5) == CAP


def test_lengths_over_a_lowered_cap_count_as_the_cap() -> None:
    lengths = Lengths.learn(finished=[5000, 5000], running=[7000], cap=CAP)

    assert lengths.expected() == CAP


def test_without_any_finished_answer_it_is_the_middle() -> None:
    lengths = Lengths.learn(finished=[], running=[5, 10], cap=CAP)

    assert lengths.n_finished == 0
    assert lengths.expected(200) == 600


def test_it_sees_early_that_long_answers_finish_last() -> None:
    true = lognormal_lengths(Random(2), mean=4000, cap=16_384, n=400)
    at = 3000  # all started together, and each has made this many tokens or ended
    finished = [length for length in true if length <= at]
    lengths = Lengths.learn(finished=finished, running=[at] * (400 - len(finished)), cap=16_384)

    assert statistics.fmean(finished) < 0.55 * statistics.fmean(true)
    assert lengths.expected() == pytest.approx(statistics.fmean(true), rel=0.3)


@given(finished=st.lists(st.integers(0, CAP), min_size=1, max_size=30), running=RUNNING)
def test_survival_falls_from_one_to_nothing_and_its_area_is_the_mean(
    finished: list[int], running: list[int]
) -> None:
    lengths = Lengths.learn(finished=finished, running=running, cap=CAP)
    shares = [lengths.survival_above(x) for x in range(0, CAP + 2, 77)]
    areas = [lengths.area_above(x) for x in range(0, CAP + 2, 77)]

    assert all(0 <= b <= a <= 1 for a, b in pairwise(shares))
    assert all(0 <= b <= a for a, b in pairwise(areas))
    assert lengths.survival_above(CAP) == lengths.area_above(CAP) == 0
    assert lengths.area_above(0) == pytest.approx(
        lengths.survival_above(0) * lengths.expected(), abs=1
    )


def test_the_mean_is_known_as_well_as_so_many_answers_say() -> None:
    finished = list(range(1, 401))
    lengths = Lengths.learn(finished=finished, running=[], cap=CAP)

    assert lengths.mean_error_tokens == pytest.approx(statistics.pstdev(finished) / 20, rel=0.01)
