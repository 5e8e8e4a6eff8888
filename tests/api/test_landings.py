"""Where budgets and deadlines end the work, in the figures of a run over a real ledger."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.core.estimate import Estimate, Unknown
from app.core.landing import EndsBy, Landing
from app.core.lengths import Lengths
from app.core.types import Counts, Tokens
from app.figures.ends import Ends
from app.figures.forecasting import Known, Outlook, outlook
from app.figures.landings import cut_at_deadlines, landings, run_landing
from tests.core.test_deadlines import EVENING, RUN
from tests.core.test_supervision import part, with_facts

KNOWN = Known(lengths=Lengths.learn(finished=[100] * 20, running=[], cap=100), started_tokens=())
HOUR = timedelta(hours=1)
AN_HOUR = Estimate(low_s=3600, mid_s=3600, high_s=3600)
HALF = Counts(pending=50, ok=50)  # 50 more of 100 tokens each


def at_work(number: int, **facts: object) -> Outlook:
    half = {"counts": HALF, "tokens": Tokens(received=5000, kept=5000), **facts}
    return outlook(with_facts(number, "short", half), KNOWN)


def ends(view: Outlook, left: Estimate | Unknown, **run: object) -> Landing | None:
    name = view.partition.name
    return landings(replace(RUN, **run), [view], {name: left}, EVENING)[name]  # type: ignore[arg-type]  # the test's own facts


def test_a_partition_ends_by_its_own_budget() -> None:
    assert ends(at_work(1, token_budget=7900), AN_HOUR) == Landing(percent=79, by=EndsBy.BUDGET)
    assert ends(at_work(1, token_budget=10_000), AN_HOUR) is None
    assert ends(at_work(1), AN_HOUR) is None


@pytest.mark.parametrize("whose", ["run", "partition"])
def test_a_deadline_of_the_run_ends_its_partitions_too(whose: str) -> None:
    at = EVENING + HOUR / 2
    view = at_work(1, deadline_at=at if whose == "partition" else None)

    found = ends(view, AN_HOUR, deadline_at=at if whose == "run" else None)

    assert found == Landing(percent=75, by=EndsBy.DEADLINE)


def test_a_deadline_that_has_passed_or_a_time_that_is_not_known_says_nothing() -> None:
    assert ends(at_work(1, deadline_at=EVENING), AN_HOUR) is None
    assert ends(at_work(1, deadline_at=EVENING + HOUR / 2), Unknown(why="estimating")) is None


def test_a_run_ends_by_its_budget_only_where_all_of_it_is_known() -> None:
    run = replace(RUN, token_budget=15_000)
    known, over = at_work(1), outlook(part(2, counts=Counts(ok=100)), None)

    assert run_landing(run, [known, over], AN_HOUR, EVENING) is None
    tight = replace(RUN, token_budget=7500)
    assert run_landing(tight, [known, over], AN_HOUR, EVENING) == Landing(
        percent=87, by=EndsBy.BUDGET
    )
    unknown = outlook(part(3), None)
    assert run_landing(tight, [known, unknown], AN_HOUR, EVENING) is None


def between(low_s: float, mid_s: float, high_s: float) -> Estimate:
    return Estimate(low_s=low_s, mid_s=mid_s, high_s=high_s)


TWO, THREE = between(6_000, 7_200, 9_000), between(9_500, 10_800, 14_000)
RUN_THREE = between(9_800, 11_000, 14_200)


def cut(
    *views: Outlook, lefts: tuple[Estimate | Unknown, ...] = (TWO, THREE), **run: object
) -> Ends:
    """Return the ends of two partitions, which end in two and three hours without a deadline."""
    names = [view.partition.name for view in views]
    before = Ends(
        partitions=dict(zip(names, lefts, strict=True)), run=RUN_THREE, decided_by=names[-1]
    )
    return cut_at_deadlines(replace(RUN, **run), views, before, EVENING)  # type: ignore[arg-type]  # the test's own facts


def test_the_deadline_of_the_run_is_the_end_of_what_would_go_on_longer() -> None:
    one, two = at_work(1), at_work(2)
    found = cut(one, two, deadline_at=EVENING + 2.5 * HOUR)

    assert found.partitions[one.partition.name] == TWO
    assert found.partitions[two.partition.name] == between(9_000, 9_000, 9_000)
    assert (found.run, found.decided_by) == (between(9_000, 9_000, 9_000), None)


def test_a_range_that_straddles_the_deadline_is_cut_at_it() -> None:
    one, two = at_work(1), at_work(2)
    found = cut(one, two, deadline_at=EVENING + 3.5 * HOUR)

    assert found.partitions[two.partition.name] == between(9_500, 10_800, 12_600)
    assert found.run == between(9_800, 11_000, 12_600)
    assert found.decided_by == two.partition.name


def test_the_deadline_of_a_partition_ends_it_and_the_run_ends_with_the_last() -> None:
    one, two = at_work(1), at_work(2, deadline_at=EVENING + HOUR)
    found = cut(one, two)

    assert found.partitions[one.partition.name] == TWO
    assert found.partitions[two.partition.name] == between(3_600, 3_600, 3_600)
    assert (found.run, found.decided_by) == (TWO, one.partition.name)


def test_a_deadline_of_one_that_does_not_end_last_leaves_the_run() -> None:
    one, two = at_work(1, deadline_at=EVENING + HOUR), at_work(2)
    found = cut(one, two)

    assert found.partitions[one.partition.name] == between(3_600, 3_600, 3_600)
    assert (found.run, found.decided_by) == (RUN_THREE, two.partition.name)


def test_of_two_deadlines_the_earlier_one_holds() -> None:
    one, two = at_work(1), at_work(2, deadline_at=EVENING + HOUR)
    found = cut(one, two, deadline_at=EVENING + HOUR / 2)

    assert set(found.partitions.values()) == {between(1_800, 1_800, 1_800)}
    assert found.run == between(1_800, 1_800, 1_800)


def test_deadlines_of_all_partitions_end_the_run_also_where_one_is_not_known() -> None:
    one = at_work(1, deadline_at=EVENING + HOUR)
    unknown = Unknown(why="estimating")
    two = at_work(2, deadline_at=EVENING + 2 * HOUR)
    found = cut(one, two, lefts=(THREE, unknown))

    assert found.partitions[two.partition.name] == unknown
    assert found.run == between(7_200, 7_200, 7_200)
    assert cut(one, at_work(2), lefts=(THREE, unknown)).run == RUN_THREE


def test_a_deadline_that_has_passed_or_is_far_away_cuts_nothing() -> None:
    one, two = at_work(1, deadline_at=EVENING - HOUR), at_work(2, deadline_at=EVENING + 9 * HOUR)
    found = cut(one, two, deadline_at=EVENING)

    assert list(found.partitions.values()) == [TWO, THREE]
    assert (found.run, found.decided_by) == (RUN_THREE, two.partition.name)
