"""Where a budget or a deadline ends the work: shares that can be worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.landing import Course, EndsBy, Landing, at_rest, course, landing, together
from app.core.lengths import Lengths
from app.core.types import Counts

CAP = 400
HUNDREDS = Lengths.learn(finished=[100] * 20, running=[], cap=CAP)
COUNTS = Counts(pending=60, running=10, ok=28, failed=2)  # 100 wanted, 30 done


def of(budget_left: int | None, goal: int | None = None) -> Course:
    way = course(COUNTS, goal, HUNDREDS, [40] * 10, budget_left)
    assert way is not None
    return way


def test_without_a_budget_all_samples_fit() -> None:
    way = of(None)

    assert way == Course(done=30, at_end=100, wanted=100, tokens=10 * 60 + 60 * 100)
    assert landing(way, None, None) is None
    assert landing(way, 60.0, None) is None


def test_a_budget_ends_with_what_was_begun_and_as_many_fresh_answers_as_fit() -> None:
    way = of(600 + 39 * 100)

    assert way.at_end == 30 + 10 + 39
    assert landing(way, None, None) == Landing(percent=79, by=EndsBy.BUDGET)
    assert landing(of(6600), None, None) is None
    assert landing(of(6599), None, None) == Landing(percent=99, by=EndsBy.BUDGET)


def test_answers_that_were_begun_are_finished_even_beyond_the_budget() -> None:
    assert landing(of(-50), None, None) == Landing(percent=40, by=EndsBy.BUDGET)


def test_a_goal_that_the_budget_meets_is_met() -> None:
    assert landing(of(2600, goal=58), None, None) is None  # 28 kept, 30 more
    assert landing(of(1600, goal=58), None, None) == Landing(percent=82, by=EndsBy.BUDGET)


def test_nothing_is_said_before_twenty_answers_have_ended() -> None:
    few = Lengths.learn(finished=[100] * 19, running=[], cap=CAP)

    assert course(COUNTS, None, few, [], 100) is None


def test_a_deadline_ends_the_share_that_time_allows() -> None:
    way = of(None)

    assert landing(way, 3600.0, 1800.0) == Landing(percent=65, by=EndsBy.DEADLINE)
    assert landing(way, 3600.0, 3601.0) is None
    assert landing(way, None, 1800.0) is None  # how long it takes is not known
    assert landing(way, 3600.0, -5.0) == Landing(percent=30, by=EndsBy.DEADLINE)


def test_the_nearer_of_budget_and_deadline_decides() -> None:
    way = of(600 + 39 * 100)

    assert landing(way, 3600.0, 7200.0) == Landing(percent=79, by=EndsBy.BUDGET)
    assert landing(way, 3600.0, 1800.0) == Landing(percent=54, by=EndsBy.DEADLINE)


def test_a_run_is_its_partitions_together_under_its_own_budget() -> None:
    over = at_rest(Counts(pending=50, ok=50), None)
    both = together([of(None), over], None)

    assert both == Course(done=80, at_end=150, wanted=200, tokens=6600)
    assert together([of(None), over], 3300).at_end == 80 + 35
    assert landing(together([of(None), over], 3300), None, None) == Landing(
        percent=57, by=EndsBy.BUDGET
    )


counts = st.builds(
    Counts, **dict.fromkeys(("pending", "running", "ok", "failed"), st.integers(0, 500))
)


@given(
    counts=counts,
    goal=st.none() | st.integers(1, 2000),
    finished=st.lists(st.integers(1, CAP), min_size=20, max_size=40),
    started=st.lists(st.integers(0, CAP), max_size=40),
    budget=st.none() | st.integers(-(10**5), 10**6),
    more=st.integers(0, 10**5),
    time_left=st.none() | st.floats(0.1, 1e6),
    deadline=st.none() | st.floats(-1e6, 1e6),
)
def test_a_landing_lies_between_what_is_done_and_all_and_more_budget_never_lowers_it(
    *,
    counts: Counts,
    goal: int | None,
    finished: list[int],
    started: list[int],
    budget: int | None,
    more: int,
    time_left: float | None,
    deadline: float | None,
) -> None:
    lengths = Lengths.learn(finished=finished, running=started, cap=CAP)
    way = course(counts, goal, lengths, started, budget)
    assert way is not None

    assert way.done <= way.at_end <= way.wanted + 1e-6
    found = landing(way, time_left, deadline)
    if found is not None:
        assert int(100 * way.done / way.wanted) - 1 <= found.percent <= 99
    if budget is not None:
        higher = course(counts, goal, lengths, started, budget + more)
        assert higher is not None
        assert higher.at_end >= way.at_end


@pytest.mark.parametrize("goal", [None, 5])
def test_where_nothing_is_wanted_nothing_is_said(goal: int | None) -> None:
    way = course(Counts(rejected=3), goal, HUNDREDS, [], 0)

    assert way is not None
    assert landing(way, 10.0, 1.0) is None
