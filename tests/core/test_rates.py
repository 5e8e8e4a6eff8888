"""The step curve: found again from its own levels, and what stands in where one was seen."""

from itertools import pairwise
from math import isfinite
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.rates import ASSUMED_HALF_REQUESTS, Level, block_means, fading_weights, fit_steps


def level(n: float, start_s: float = 0.01, per_request_s: float = 0.0002) -> Level:
    step_s = start_s + per_request_s * n
    return Level(n_requests=n, tokens_per_s=n / step_s, seconds=300)


def test_a_curve_is_found_again_from_what_was_seen_of_it() -> None:
    curve = fit_steps([level(n) for n in (4, 20, 60, 150)])

    assert curve is not None
    for n in (1, 32, 200):
        assert curve.step_s(n) == pytest.approx(0.01 + 0.0002 * n, rel=0.05)
    assert curve.half_spread < 0.2


def test_one_level_keeps_the_assumed_bend_and_says_that_it_is_unsure() -> None:
    curve = fit_steps([level(40)])

    assert curve is not None
    assert curve.half_requests == pytest.approx(ASSUMED_HALF_REQUESTS, rel=0.1)
    assert curve.step_s(40) == pytest.approx(0.01 + 0.0002 * 40)
    assert curve.half_spread > 0.7


def test_nothing_seen_is_no_curve() -> None:
    assert fit_steps([]) is None
    assert fit_steps([Level(n_requests=0, tokens_per_s=0, seconds=10)]) is None


@given(
    st.lists(
        st.builds(
            Level,
            n_requests=st.floats(0.1, 5000),
            tokens_per_s=st.floats(0.01, 1e6),
            seconds=st.floats(1, 1e5),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_more_at_once_never_makes_a_step_shorter(levels: list[Level]) -> None:
    curve = fit_steps(levels)

    assert curve is not None
    steps = [curve.step_s(n) for n in (0, 1, 10, 100, 1000)]
    assert all(isfinite(step) and step > 0 for step in steps)
    assert all(a <= b for a, b in pairwise(steps))


def test_half_an_hour_ago_counts_half() -> None:
    assert fading_weights([0, 1800, 3600]) == [1.0, 0.5, 0.25]


def test_block_means_scatter_about_the_mean_and_are_the_same_again() -> None:
    values, weights = [1.0, 2.0, 3.0], [1.0, 1.0, 1.0]
    means = block_means(values, weights, 200, Random(1))

    assert means == block_means(values, weights, 200, Random(1))
    assert sum(means) / 200 == pytest.approx(2.0, abs=0.1)
    assert 1.0 <= min(means) < max(means) <= 3.0
    assert block_means([], [], 3, Random(1)) == [1.0, 1.0, 1.0]
