"""When a tail counts as a loop, and when it does not."""

from array import array
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.loops import MAX_PERIOD, MIN_REPEATS, MIN_SPAN, loop_period


def normal_text(n: int, seed: int = 1) -> list[int]:
    random = Random(seed)
    return [random.randrange(150_000) for _ in range(n)]


@pytest.mark.parametrize(
    ("tokens", "period"),
    [
        ([36] * 400, 1),
        ([36] * MIN_SPAN, 1),
        ([*normal_text(9000), *[7, 8, 9] * 100], 3),
        ([*normal_text(50), *list(range(40)) * 8], 40),
        (normal_text(MAX_PERIOD) * MIN_REPEATS, MAX_PERIOD),
    ],
)
def test_a_short_period_repeated_many_times_is_a_loop(tokens: list[int], period: int) -> None:
    assert loop_period(array("I", tokens)) == period


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        [1],
        [36] * (MIN_SPAN - 1),
        normal_text(5000),
        [*[36] * 5000, 9],  # a loop that ended by itself
        [36] * 150 + [1] + [36] * 150,
        list(range(40)) * 7,
        normal_text(MAX_PERIOD + 1) * 20,
    ],
)
def test_other_tails_are_not(tokens: list[int]) -> None:
    assert loop_period(array("I", tokens)) is None


def test_thresholds_are_arguments() -> None:
    tail = array("I", [1, 2] * 4)

    assert loop_period(tail) is None
    assert loop_period(tail, min_repeats=4, min_span=8) == 2
    assert loop_period(tail, min_repeats=4, min_span=8, max_period=1) is None


@given(
    block=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    repeats=st.integers(1, 20),
    before=st.lists(st.integers(0, 9), max_size=10),
)
def test_the_period_found_is_one_that_the_tail_has(
    block: list[int], repeats: int, before: list[int]
) -> None:
    tokens = before + block * repeats

    period = loop_period(array("I", tokens), min_span=60)

    if period is not None:
        span = max(60, MIN_REPEATS * period)
        tail = tokens[-span:]
        assert all(tail[i] == tail[i + period] for i in range(span - period))
    elif repeats >= MIN_REPEATS:
        assert len(block) * repeats < 60
