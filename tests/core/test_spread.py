"""Buckets and percentiles: against the exact ones, and what may never change in a stored scheme."""

from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.answer import compact, ended_by_length
from app.core.spread import LEAST, Measure, Spread, bucket_of, cut_ratio, measured, upper_of

VALUES = st.lists(st.integers(0, 40_000) | st.integers(0, 2**31 - 1), min_size=1, max_size=60)
SHARES = st.floats(0, 1)


def exact(values: list[int], share: float) -> int:
    return sorted(values)[max(1, ceil(share * len(values))) - 1]


@given(values=VALUES, share=SHARES)
def test_a_percentile_is_in_the_bucket_of_the_exact_one(values: list[int], share: float) -> None:
    found = Spread.of(values).percentile(share)

    number = bucket_of(exact(values, share))
    assert found is not None
    assert LEAST[number] <= found <= upper_of(number)


@given(values=VALUES, shares=st.lists(SHARES, min_size=2, max_size=5))
def test_percentiles_do_not_fall(values: list[int], shares: list[float]) -> None:
    spread = Spread.of(values)

    found = [spread.percentile(share) or 0.0 for share in sorted(shares)]

    assert all(low <= high + 1e-6 for low, high in pairwise(found))


@given(value=st.integers(0, 2**31 - 1), share=SHARES)
def test_of_one_answer_every_percentile_is_its_own_value(value: int, share: float) -> None:
    assert Spread.of([value]).percentile(share) == value


@given(one=VALUES, other=VALUES)
def test_spreads_add_up(one: list[int], other: list[int]) -> None:
    both = Spread.of(one).plus(Spread.of(other))

    assert both == Spread.of(one + other)
    assert (both.n, both.mean) == (len(one + other), sum(one + other) / len(one + other))


@given(values=VALUES, octave=st.integers(0, 31))
def test_what_is_below_a_power_of_two_is_counted_exactly(values: list[int], octave: int) -> None:
    below = sum(value < 2**octave for value in values)

    assert Spread.of(values).n_below(2**octave) == below
    assert Spread.of([8]).n_below(9) == 0  # inside a bucket: what it holds is not told apart


def test_buckets_are_narrow_and_their_numbers_never_move() -> None:
    """Ledgers hold the numbers: a scheme that counts otherwise would misread them."""
    widths = [(upper_of(k) + 1 - LEAST[k]) / LEAST[k] for k in range(1, len(LEAST) - 1)]
    assert max(widths[7:]) <= 0.25
    assert LEAST[:14] == (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20)
    assert [LEAST.index(2**octave) for octave in (5, 10, 20, 31)] == [16, 36, 76, 120]
    assert len(LEAST) == 121


@pytest.mark.parametrize(("value", "number"), [(-3, 0), (0, 0), (2**31, 120), (2**40, 120)])
def test_what_is_out_of_range_counts_in_the_outermost_bucket(value: int, number: int) -> None:
    assert bucket_of(value) == number


def test_of_nothing_nothing_is_known() -> None:
    nothing = Spread()

    assert (nothing.n, nothing.mean, nothing.percentile(0.5)) == (0, None, None)
    assert (nothing.bounds, nothing.counts) == ((), ())
    assert cut_ratio(nothing, nothing) is None


@pytest.mark.parametrize("share", [-0.1, 1.1, 50])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Spread.of([1]).percentile(share)


@pytest.mark.parametrize(
    ("sent", "is_cut"),
    [
        ({"type": "length", "length": 64}, True),
        ("length", True),
        ({"type": "stop", "matched": 7}, False),
        ("stop", False),
        ({"matched": "length"}, False),
        (["length"], False),
    ],
)
def test_an_answer_is_cut_if_a_length_ended_it(sent: object, is_cut: bool) -> None:
    assert ended_by_length(compact(sent)) is is_cut
    assert (Measure.OUTPUT_CUT, 9) in measured(9, compact(sent), None) or not is_cut
    assert len(measured(9, compact(sent), None)) == 1 + is_cut
