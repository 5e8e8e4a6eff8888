"""Reservations and admissions; the acceptance of the token budget on the server model."""

from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.budget import Admission, admit, remaining_goal, reservation
from app.core.lengths import Lengths
from app.core.types import Counts
from benchmarks.budget import Case, spend


def learnt(n: int, *, cap: int = 400, length: int = 100) -> Lengths:
    return Lengths.learn(finished=[length] * n, running=[], cap=cap)


def test_all_that_may_come_is_reserved_until_twenty_answers_have_ended() -> None:
    assert reservation(None, 0, 400) == 400
    assert reservation(learnt(19), 30, 400) == 370
    assert reservation(learnt(20), 30, 400) == 70


def test_an_answer_at_its_cap_reserves_nothing() -> None:
    assert reservation(learnt(20), 400, 400) == 0
    assert reservation(None, 500, 400) == 0
    assert reservation(learnt(20), 500, 400) == 0


@given(
    finished=st.lists(st.integers(0, 1000), max_size=40),
    running=st.lists(st.integers(0, 1000), max_size=40),
    made=st.integers(0, 1200),
)
def test_a_reservation_is_at_least_one_token_and_never_more_than_the_cap_allows(
    finished: list[int], running: list[int], made: int
) -> None:
    lengths = Lengths.learn(finished=finished, running=running, cap=1000)

    reserved = reservation(lengths, made, 1000)

    assert min(1, max(0, 1000 - made)) <= reserved <= max(0, 1000 - made)


@given(
    budget=st.integers(0, 10**9),
    used=st.integers(0, 10**9),
    reserved=st.integers(0, 10**9),
    each=st.integers(0, 20_000),
    wanted=st.integers(-1, 5000),
)
def test_no_admission_takes_used_and_reserved_above_the_budget(
    budget: int, used: int, reserved: int, each: int, wanted: int
) -> None:
    admission = admit(
        budget_tokens=budget,
        used_tokens=used,
        reserved_tokens=reserved,
        each_tokens=each,
        wanted=wanted,
    )

    assert 0 <= admission.n <= max(0, wanted)
    assert admission.n + admission.held_back == max(0, wanted)
    if admission.n:
        assert used + reserved + admission.n * each <= budget
    if admission.held_back:
        assert used + reserved + (admission.n + 1) * max(1, each) > budget


def test_without_a_budget_all_is_admitted() -> None:
    admission = admit(budget_tokens=None, used_tokens=9, reserved_tokens=9, each_tokens=9, wanted=7)

    assert admission == Admission(n=7, held_back=0, reached=False)


def test_a_budget_is_reached_only_when_nothing_in_flight_can_still_make_room() -> None:
    def at(reserved: int) -> Admission:
        return admit(
            budget_tokens=2000,
            used_tokens=1900,
            reserved_tokens=reserved,
            each_tokens=400,
            wanted=4,
        )

    assert at(100) == Admission(n=0, held_back=4, reached=False)
    assert at(0) == Admission(n=0, held_back=4, reached=True)


def test_prg_06_a_budget_of_2000_with_answers_of_100_is_spent_from_1600_to_2000() -> None:
    running: list[int] = []
    finished, claimed, reached, cap, order = 0, 0, False, 400, Random(6)

    while True:
        lengths = learnt(finished)
        used = 100 * finished + sum(running)
        reserved = sum(reservation(lengths, made, cap) for made in running)
        each = reservation(lengths, 0, cap)
        admission = admit(
            budget_tokens=2000,
            used_tokens=used,
            reserved_tokens=reserved,
            each_tokens=each,
            wanted=min(8 - len(running), 100 - claimed),
        )
        assert admission.n == 0 or used + reserved + admission.n * each <= 2000
        running += [0] * admission.n
        claimed += admission.n
        reached = admission.reached
        if not running:
            break
        i = order.randrange(len(running))
        running[i] += 50
        if running[i] == 100:
            running.pop(i)
            finished += 1

    assert reached
    assert 1600 <= 100 * finished <= 2000


@pytest.mark.parametrize(
    ("goal", "counts", "left"),
    [
        (None, Counts(pending=9, running=2), 9),
        (5, Counts(pending=9, running=2, ok=1), 2),
        (5, Counts(pending=1, running=2, ok=1), 1),
        (5, Counts(pending=9, running=2, ok=1, truncated=1, empty=1, suspect=1), 0),
        (5, Counts(pending=9, failed=5, rejected=3), 5),
        (0, Counts(pending=9), 0),
    ],
)
def test_a_goal_counts_kept_answers_and_takes_those_running_to_be_kept(
    goal: int | None, counts: Counts, left: int
) -> None:
    assert remaining_goal(goal, counts) == left


def test_eleven_seeds_of_three_million_tokens_end_within_four_percent_their_median_within_one() -> (
    None
):
    case = Case(budget_tokens=3_000_000, mean_tokens=4000, cap_tokens=16_384, in_flight=64)

    spent = [spend(seed, case) for seed in range(11)]

    off = [one.off_ratio(case) for one in spent]
    assert max(map(abs, off)) <= 0.04, off
    assert abs(median(off)) <= 0.01, off
    assert all(0.9 * case.budget_tokens < one.promised_tokens <= 3_000_000 for one in spent)


def test_a_budget_smaller_than_its_worst_case_in_flight_is_not_passed_by_much() -> None:
    case = Case(budget_tokens=300_000, mean_tokens=2000, cap_tokens=16_384, in_flight=64)

    spent = spend(1, case)

    assert spent.promised_tokens <= case.budget_tokens
    assert abs(spent.off_ratio(case)) <= 0.15
