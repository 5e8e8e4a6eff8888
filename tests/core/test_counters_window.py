"""Growth of counters over a window: rates, shares, percentiles, new beginnings, gaps."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.counters_window import CounterWindow, Point, Quantile, quantile


def filled(*values: tuple[float, float], name: str = "n") -> CounterWindow:
    window = CounterWindow(600.0)
    for at_s, value in values:
        window.add(Point(at_s=at_s, counters={name: value}))
    return window


def test_nothing_is_known_of_one_reading() -> None:
    window = filled((0.0, 1000.0))

    assert window.rate_per_s(["n"], 60) is None
    assert window.growth(["n"], 600) is None
    assert CounterWindow(600).growth(["n"], 600) is None


def test_a_rate_is_over_the_last_minute_only() -> None:
    seconds = range(0, 301, 2)
    window = filled(*((float(s), 10.0 * min(s, 240) + 500.0 * max(0, s - 240)) for s in seconds))

    assert window.rate_per_s(["n"], 60) == pytest.approx(500.0)
    assert window.growth(["n"], 600) == pytest.approx(32_400.0)


def test_standing_still_is_a_known_zero() -> None:
    assert filled((0.0, 7.0), (10.0, 7.0)).rate_per_s(["n"], 60) == 0.0


def test_a_long_gap_does_not_thin_the_rate_of_the_last_minute() -> None:
    window = filled((0.0, 0.0), (2.0, 200.0), (300.0, 300.0))
    assert window.rate_per_s(["n"], 60) is None

    window.add(Point(at_s=302.0, counters={"n": 500.0}))
    assert window.rate_per_s(["n"], 60) == pytest.approx(100.0)


def test_a_counter_that_falls_begins_the_window_anew() -> None:
    window = filled((0.0, 5000.0), (2.0, 5200.0))

    fell = window.add(Point(at_s=4.0, counters={"n": 40.0}))

    assert fell
    assert window.rate_per_s(["n"], 60) is None
    assert not window.add(Point(at_s=6.0, counters={"n": 60.0}))
    assert window.rate_per_s(["n"], 60) == pytest.approx(10.0)


def test_a_counter_that_was_missing_meanwhile_is_compared_when_it_is_back() -> None:
    window = filled((0.0, 5000.0))

    assert not window.add(Point(at_s=2.0, counters={}))
    assert window.growth(["n"], 600) is None
    assert window.add(Point(at_s=4.0, counters={"n": 4999.0}))


def test_a_counter_that_is_not_told_any_more_is_not_known_any_more() -> None:
    window = filled((0.0, 1.0), (2.0, 5.0))
    assert window.growth(["n"], 600) == 4.0

    window.add(Point(at_s=4.0, counters={}))

    assert window.growth(["n"], 600) is None
    assert window.rate_per_s(["n"], 60) is None


def test_a_counter_that_appears_later_grows_from_its_first_reading() -> None:
    window = filled((0.0, 1.0), name="other")
    window.add(Point(at_s=2.0, counters={"other": 1.0, "n": 1_000_000.0}))
    assert window.growth(["n"], 600) is None

    window.add(Point(at_s=4.0, counters={"other": 1.0, "n": 1_000_010.0}))
    assert window.growth(["n"], 600) == 10.0


def test_a_share_is_weighted_by_what_came_and_unknown_of_nothing() -> None:
    window = CounterWindow(600)
    for at_s, hit, miss in ((0.0, 900.0, 100.0), (10.0, 900.0, 100.0), (20.0, 910.0, 130.0)):
        window.add(Point(at_s=at_s, counters={"hit": hit, "miss": miss}))
        if at_s < 20:
            assert window.share(["hit"], ["miss"], 600) is None

    assert window.share(["hit"], ["miss"], 600) == pytest.approx(0.25)


def test_old_readings_are_forgotten() -> None:
    window = filled(*((float(s), float(s)) for s in range(0, 7200, 2)))

    assert len(window._points) <= 451
    assert window.growth(["n"], 600) == pytest.approx(600.0)


def test_buckets_grow_over_the_window() -> None:
    window = CounterWindow(600)
    window.add(Point(at_s=0.0, counters={}, buckets={1.0: 90.0, 2.0: 90.0, inf: 90.0}))
    assert window.bucket_growth(600) == {}
    window.add(Point(at_s=5.0, counters={}, buckets={1.0: 91.0, 2.0: 94.0, inf: 94.0}))

    assert window.bucket_growth(600) == {1.0: 1.0, 2.0: 4.0, inf: 4.0}
    window.add(Point(at_s=7.0, counters={}))
    assert window.bucket_growth(600) == {}


def test_the_highest_bucket_gives_more_than() -> None:
    buckets = {200.0: 50.0, 400.0: 60.0, inf: 100.0}

    assert quantile(buckets, 0.99) == Quantile(value_s=400.0, is_more=True)
    assert quantile(buckets, 0.5) == Quantile(value_s=200.0)
    assert quantile({inf: 3.0}, 0.5) is None
    assert quantile({1.0: 0.0, inf: 0.0}, 0.5) is None
    assert quantile({}, 0.5) is None


def test_empty_buckets_below_do_not_pull_a_percentile_down() -> None:
    half = quantile({0.1: 0, 0.2: 0, 0.4: 10, inf: 10}, 0.5)

    assert half is not None
    assert half.value_s == pytest.approx(0.3)


increments = st.lists(
    st.tuples(st.floats(0.1, 100), st.integers(-50, 1000)), min_size=1, max_size=40
)


@given(increments)
def test_no_growth_is_ever_negative(steps: list[tuple[float, int]]) -> None:
    window, at_s, value = CounterWindow(600), 0.0, 0
    for step_s, grown in steps:
        at_s, value = at_s + step_s, max(0, value + grown)
        window.add(Point(at_s=at_s, counters={"n": float(value)}))
        for span_s in (60.0, 600.0):
            growth = window.growth(["n"], span_s)
            assert growth is None or growth >= 0


@given(st.lists(st.integers(0, 9), min_size=3, max_size=6), st.floats(0, 1))
def test_a_percentile_lies_within_the_limits_and_grows_with_its_share(
    counts: list[int], q: float
) -> None:
    limits = [*(float(2**n) for n in range(len(counts) - 1)), inf]
    buckets = {limit: float(sum(counts[: n + 1])) for n, limit in enumerate(limits)}

    low, high = quantile(buckets, q / 2), quantile(buckets, q)

    if not sum(counts):
        assert low is high is None
        return
    assert low is not None
    assert high is not None
    assert 0 <= low.value_s <= high.value_s <= limits[-2]
