"""What is withheld, and how slowly a shown moment moves."""

from hypothesis import given
from hypothesis import strategies as st

from app.core.estimate import Estimate, Unknown
from app.core.showing import Shown, not_steady, smoothed, steady_needed_s, too_few

SECONDS = st.floats(0, 1e6)


def estimate(mid_s: float) -> Estimate:
    return Estimate(low_s=mid_s * 0.9, mid_s=mid_s, high_s=mid_s * 1.2)


def test_fifty_answers_or_two_percent_are_enough() -> None:
    assert too_few(49, 80_000) == Unknown(why="estimating: 49 of 50 answers have ended")
    assert too_few(50, 80_000) is None
    assert too_few(20, 1_000) is None
    assert too_few(4, 20) == Unknown(why="estimating: 4 of 5 answers have ended")


def test_ten_minutes_of_a_day_and_ten_seconds_of_a_minute_are_enough() -> None:
    assert not_steady(60_000, 480, is_again=False) == Unknown(why="estimating (2m)")
    assert not_steady(60_000, 600, is_again=False) is None
    assert not_steady(85, 9, is_again=False) == Unknown(why="estimating (1 s)")
    assert not_steady(85, 10, is_again=False) is None


def test_after_a_change_it_says_how_long_until_it_is_back() -> None:
    assert not_steady(60_000, 420, is_again=True) == Unknown(why="re-estimating (3m)")


@given(left_s=SECONDS, observed_s=SECONDS)
def test_the_wait_is_between_ten_seconds_and_ten_minutes(left_s: float, observed_s: float) -> None:
    assert 10 <= steady_needed_s(left_s, observed_s) <= 600


def test_the_shown_moment_moves_a_tenth_of_what_remains_or_a_third_of_the_gap() -> None:
    before = Shown(estimate=estimate(1_000), at_s=0.0, n_changes=0)

    assert smoothed(estimate(1_200), before, 10.0, 0).estimate.mid_s == 990 + 99
    assert smoothed(estimate(3_000), before, 10.0, 0).estimate.mid_s == 990 + 2_010 / 3
    assert smoothed(estimate(90), before, 10.0, 0).estimate.mid_s == 990 - 900 / 3
    assert smoothed(estimate(3_000), before, 10.0, 1).estimate == estimate(3_000)
    assert smoothed(estimate(1_010), before, 10.0, 0).estimate.mid_s == 1_010


def test_srv_03_a_time_that_was_counted_down_to_nothing_comes_back() -> None:
    shown = Shown(estimate=estimate(13), at_s=0.0, n_changes=0)
    for step in range(1, 12):
        shown = smoothed(estimate(100), shown, 20.0 * step, 0)

    assert shown.passed(20.0 * 11).mid_s >= 50


@given(old_s=SECONDS, new_s=st.floats(1, 1e6))
def test_the_shown_moment_comes_to_a_forecast_that_stays(old_s: float, new_s: float) -> None:
    shown = Shown(estimate=estimate(old_s), at_s=0.0, n_changes=0)
    for _ in range(60):
        shown = smoothed(estimate(new_s), shown, 0.0, 0)

    assert shown.estimate == estimate(new_s)


def test_between_two_forecasts_it_counts_down() -> None:
    shown = Shown(estimate=estimate(100), at_s=5.0, n_changes=0)

    assert shown.passed(15.0).mid_s == 90.0
    assert shown.passed(500.0) == Estimate(low_s=0.0, mid_s=0.0, high_s=0.0)


@given(old_s=SECONDS, new_s=SECONDS, passed_s=SECONDS)
def test_what_is_shown_is_ordered_and_not_negative(
    old_s: float, new_s: float, passed_s: float
) -> None:
    before = Shown(estimate=estimate(old_s), at_s=0.0, n_changes=0)
    shown = smoothed(estimate(new_s), before, passed_s, 0).estimate

    assert 0 <= shown.low_s <= shown.mid_s <= shown.high_s
