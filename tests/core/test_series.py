"""The arithmetic of a run's history: buckets, gaps, means, and which rows are forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.series import (
    DAY_S,
    HOUR_S,
    Mark,
    Row,
    buckets,
    five_minutes,
    gauge_pieces,
    kept_every_ms,
    mean,
    pieces,
    spark,
    surplus,
)

NOW_S = 1_000_000.0
STEP_S = 10.0


def marks(rates: list[int], *, end_s: float = NOW_S, session: int = 1) -> list[Mark]:
    """Marks ten seconds apart that end at `end_s`, with so many tokens a second between them."""
    begin_s = end_s - STEP_S * len(rates)
    found, tokens = [Mark(begin_s, 0, session)], 0
    for index, rate in enumerate(rates, 1):
        tokens += int(rate * STEP_S)
        found.append(Mark(begin_s + index * STEP_S, tokens, session))
    return found


def test_a_bucket_is_the_mean_over_the_time_in_it_that_is_known() -> None:
    known = pieces(marks([100, 200, 300]), NOW_S, STEP_S)

    assert buckets(known, NOW_S - 40, NOW_S, 4) == (None, 100.0, 200.0, 300.0)
    assert buckets(known, NOW_S - 40, NOW_S, 2) == (100.0, 250.0)
    assert buckets(known, NOW_S - 15, NOW_S - 5, 1) == (250.0,)


def test_nothing_recorded_is_a_gap_and_nothing_received_is_zero() -> None:
    before = marks([100, 0], end_s=NOW_S - 100)
    after = marks([50, 50])

    known = pieces([*before, *after], NOW_S, STEP_S)

    assert buckets(known, NOW_S - 120, NOW_S, 12) == (100, 0, *[None] * 8, 50, 50)


def test_the_time_between_two_services_is_a_gap_however_short() -> None:
    before = marks([100, 100], end_s=NOW_S - 30)
    after = [Mark(at, tokens + 9_000, 2) for at, tokens, _ in marks([100, 100])]

    known = pieces([*before, *after], NOW_S, STEP_S)

    assert buckets(known, NOW_S - 50, NOW_S, 5) == (100, 100, None, 100, 100)


def test_a_counter_that_falls_is_no_speed() -> None:
    assert pieces([Mark(NOW_S - 10, 50, 1), Mark(NOW_S, 40, 1)], NOW_S, STEP_S) == []


def test_older_rows_may_lie_further_apart() -> None:
    pair = [Mark(0.0, 0, 1), Mark(60.0, 600, 1)]

    assert pieces(pair, 100.0, STEP_S) == []
    assert pieces(pair, HOUR_S + 100, STEP_S)[0].tokens_per_s == 10.0


def test_a_gauge_holds_since_the_mark_before() -> None:
    known = gauge_pieces(marks([1, 1, 1]), [5.0, 7.0, None, 9.0], NOW_S, STEP_S)

    assert buckets(known, NOW_S - 30, NOW_S, 3) == (7.0, None, 9.0)


def test_the_mean_leaves_out_what_is_not_known() -> None:
    known = pieces([*marks([100] * 6, end_s=NOW_S - 600), *marks([300] * 6)], NOW_S, STEP_S)

    assert mean(known, NOW_S - HOUR_S, NOW_S) == 200.0
    assert mean(known, NOW_S - 60, NOW_S) == 300.0
    assert mean(known[:0], NOW_S - HOUR_S, NOW_S) is None


def test_five_minutes_must_all_be_known() -> None:
    assert five_minutes(pieces(marks([70] * 29), NOW_S, STEP_S), NOW_S) is None
    assert five_minutes(pieces(marks([70] * 30), NOW_S, STEP_S), NOW_S) == 70.0


def test_a_spark_has_sixty_pieces_whose_borders_stand_still() -> None:
    known = pieces(marks([10] * 90 + [40] * 90, end_s=1_000_005.0), 1_000_005.0, STEP_S)

    first, later = spark(known, 1_000_005.0), spark(known, 1_000_019.0)

    assert len(first) == 60
    assert first == later
    assert first[-1] == 40.0
    assert first[1] == 10.0
    assert spark(known, 1_000_025.0)[:-1] == first[1:]


def every(step_s: float, *, from_age_s: float, n: int, session: int = 1) -> list[Row]:
    first_ms = round((NOW_S - from_age_s) * 1000)
    return [Row(first_ms + round(index * step_s * 1000), session) for index in range(n)]


@pytest.mark.parametrize(("age_s", "kept_s"), [(60, 0), (HOUR_S, 60), (DAY_S, 600)])
def test_what_is_kept_at_which_age(age_s: float, kept_s: int) -> None:
    assert kept_every_ms(int(age_s * 1000)) == kept_s * 1000


def test_after_an_hour_one_row_a_minute_stays_and_after_a_day_one_each_ten() -> None:
    fresh = every(10, from_age_s=3_000, n=300)
    assert surplus(fresh, int(NOW_S * 1000)) == []

    old = every(10, from_age_s=7_200, n=100)
    gone = set(surplus(old, int(NOW_S * 1000)))
    stay = [row.at_ms for row in old if row.at_ms not in gone]
    assert len({at // 60_000 for at in stay}) == len({row.at_ms // 60_000 for row in old})
    assert len(stay) <= len({at // 60_000 for at in stay}) + 1  # and the end, which may go on

    older = every(60, from_age_s=2 * DAY_S, n=100)
    gone = set(surplus(older, int(NOW_S * 1000)))
    assert 90 <= len(gone) + 10 <= 100


def test_the_ends_of_a_session_stay() -> None:
    first = every(10, from_age_s=7_200, n=5)
    second = every(10, from_age_s=7_150, n=5, session=2)

    gone = surplus([*first, *second], int(NOW_S * 1000))

    assert not {first[0].at_ms, first[-1].at_ms, second[0].at_ms, second[-1].at_ms} & set(gone)


@given(st.lists(st.integers(0, 10**9), unique=True, max_size=200), st.integers(1, 3))
def test_what_stays_is_thin_for_good(moments: list[int], n_sessions: int) -> None:
    """Thinning again takes nothing more, and of each bucket something is still there."""
    rows = [Row(at, 1 + index * n_sessions // 200) for index, at in enumerate(sorted(moments))]
    now_ms = 2 * 10**9

    gone = set(surplus(rows, now_ms))
    stay = [row for row in rows if row.at_ms not in gone]

    assert surplus(stay, now_ms) == []
    assert {row.at_ms // 600_000 for row in stay} == {row.at_ms // 600_000 for row in rows}


@given(
    st.lists(st.integers(0, 1_000), min_size=1, max_size=60),
    st.integers(1, 50),
)
def test_no_token_is_lost_or_made_by_cutting_into_buckets(rates: list[int], n: int) -> None:
    span_s = STEP_S * len(rates)
    known = pieces(marks(rates), NOW_S, STEP_S)

    drawn = buckets(known, NOW_S - span_s, NOW_S, n)

    total = sum(each * span_s / n for each in drawn if each is not None)
    assert total == pytest.approx(sum(rates) * STEP_S)
