"""Reservations and admissions; the acceptance of the token budget on the server model."""

from collections.abc import Callable
from functools import partial
from math import ceil
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.budget import (
    MARGIN_RATIO,
    Admission,
    Budget,
    admit,
    margin,
    remaining_goal,
    reservation,
)
from app.core.lengths import Lengths
from app.core.types import Counts
from benchmarks.budget import CASES, Case, Part, measure, spend, unbudgeted_s, verdict


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


def fits(budget: Budget, reserved: int, need: int, keep_free: Callable[[int], int]) -> bool:
    reserved += budget.reserved_by_others
    return budget.used_tokens + reserved + need + keep_free(reserved) <= budget.tokens


BUDGETS = st.lists(
    st.builds(
        Budget,
        tokens=st.integers(0, 10**6),
        used_tokens=st.integers(0, 10**6),
        reserved_by_others=st.integers(0, 10**5),
    ),
    min_size=1,
    max_size=2,
)


@given(
    budgets=BUDGETS,
    reserved=st.integers(0, 10**6),
    needs=st.lists(st.integers(0, 20_000), max_size=30),
    share=st.sampled_from([0.0, 0.25, 1.0]),
)
def test_prg_06_no_admission_takes_used_and_reserved_above_a_budget(
    budgets: list[Budget], reserved: int, needs: list[int], share: float
) -> None:
    def keep_free(tokens: int) -> int:
        return ceil(share * tokens)

    admission = admit(budgets=budgets, reserved_tokens=reserved, needs=needs, margin=keep_free)

    assert 0 <= admission.n <= len(needs)
    assert admission.reserved_tokens == reserved + sum(needs[: admission.n])
    if admission.n:
        for budget in budgets:
            spoken_for = budget.reserved_by_others + admission.reserved_tokens
            assert budget.used_tokens + spoken_for <= budget.tokens
    if admission.n < len(needs):
        need = max(1, needs[admission.n])
        assert not all(fits(b, admission.reserved_tokens, need, keep_free) for b in budgets)


def test_without_a_budget_all_is_admitted() -> None:
    admission = admit(budgets=[], reserved_tokens=9, needs=[9] * 7, margin=ceil)

    assert admission == Admission(n=7, reserved_tokens=9 + 7 * 9)


def test_a_need_is_asked_no_further_than_to_the_first_that_does_not_fit() -> None:
    asked = iter([10, 10, 10, 10])

    admission = admit(budgets=[Budget(tokens=25, used_tokens=0)], reserved_tokens=0, needs=asked)

    assert admission.n == 2
    assert list(asked) == [10]


def test_a_budget_is_reached_only_when_nothing_in_flight_can_still_make_room() -> None:
    def at(own: int, others: int) -> Admission:
        budget = Budget(tokens=2000, used_tokens=1900, reserved_by_others=others)
        return admit(budgets=[budget], reserved_tokens=own, needs=[400] * 4)

    assert at(100, 0) == Admission(n=0, reserved_tokens=100, reached=False)
    assert at(0, 100) == Admission(n=0, reserved_tokens=0, reached=False)
    assert at(0, 0) == Admission(n=0, reserved_tokens=0, reached=True)


def test_the_margin_is_a_share_of_what_is_expected_and_none_of_what_may_come_at_most() -> None:
    assert margin(None, 1000) == 0
    assert margin(learnt(19), 1000) == 0
    assert margin(learnt(20), 1000) == 1000 * MARGIN_RATIO
    assert margin(learnt(20), 0) == 0


def test_near_its_end_a_budget_is_claimed_ever_fewer_at_a_time() -> None:
    lengths = learnt(50)

    def claimed_with(room: int) -> int:
        return admit(
            budgets=[Budget(tokens=room, used_tokens=0)],
            reserved_tokens=0,
            needs=[100] * 1000,
            margin=lambda tokens: margin(lengths, tokens),
        ).n

    assert [claimed_with(room) for room in (99, 100, 260, 1000, 10_000)] == [0, 1, 2, 6, 62]


def test_prg_06_a_budget_of_2000_with_answers_of_100_is_spent_from_1600_to_2000() -> None:
    running: list[int] = []
    finished, claimed, reached, cap, order = 0, 0, False, 400, Random(6)

    while True:
        lengths = learnt(finished)
        used = 100 * finished + sum(running)
        admission = admit(
            budgets=[Budget(tokens=2000, used_tokens=used)],
            reserved_tokens=sum(reservation(lengths, made, cap) for made in running),
            needs=[reservation(lengths, 0, cap)] * min(8 - len(running), 100 - claimed),
            margin=partial(margin, lengths),
        )
        assert admission.n == 0 or used + admission.reserved_tokens <= 2000
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


SMALL = Case(
    name="small",
    budget_tokens=300_000,
    parts=(Part(mean_tokens=2000, in_flight=40, cap_tokens=8192),),
)


@pytest.mark.parametrize("seed", range(3))
def test_a_small_budget_lands_where_stopping_at_the_sum_passes_it_by_far(seed: int) -> None:
    spent = spend(seed, SMALL)

    assert spent.promised_tokens <= SMALL.budget_tokens
    assert abs(spent.off_ratio(SMALL)) <= 0.08
    assert spend(seed, SMALL, until_sum=True).off_ratio(SMALL) > 0.15
    assert unbudgeted_s(SMALL, spent.lengths) < spent.took_s


@pytest.mark.parametrize("seed", range(3))
def test_a_run_of_three_partitions_lands_on_the_budget_of_the_run(seed: int) -> None:
    case = Case(
        name="three",
        budget_tokens=400_000,
        parts=(
            Part(mean_tokens=500, in_flight=16, cap_tokens=4096),
            Part(mean_tokens=1500, in_flight=12, cap_tokens=8192),
            Part(mean_tokens=3000, in_flight=6, cap_tokens=8192),
        ),
    )

    spent = spend(seed, case)

    assert spent.promised_tokens <= case.budget_tokens
    assert abs(spent.off_ratio(case)) <= 0.03
    assert all(len(lengths) > 20 for lengths in spent.lengths)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.budget_tokens < 4_000_000], ids=lambda one: one.name
)
def test_five_seeds_of_each_measured_case_end_within_its_bar(case: Case) -> None:
    rows = [measure(seed, case) for seed in range(5)]

    assert verdict(case, rows)
