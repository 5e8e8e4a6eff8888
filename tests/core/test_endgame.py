"""The decline of a partition: what is left of it is never lost, and its end has a distribution."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.endgame import LIKELY_LEFT, decline
from app.core.lengths import Lengths

CAP = 1_000
_DICE = Random(1)
LENGTHS = Lengths.learn(
    finished=[min(CAP, 1 + int(_DICE.expovariate(1 / 300))) for _ in range(800)],
    running=[],
    cap=CAP,
)


@given(
    ages=st.lists(st.integers(0, CAP - 1), max_size=60),
    n_fresh=st.integers(0, 2_000),
    slots=st.integers(1, 64),
    wait=st.sampled_from([0.0, 250.0]),
)
def test_the_curve_never_rises_and_comes_to_its_end(
    ages: list[int], n_fresh: int, slots: int, wait: float
) -> None:
    curve = decline(LENGTHS, ages, n_fresh, slots, wait)

    assert curve.bulk_steps >= 0
    assert all(a >= b >= 0 for a, b in pairwise(curve.in_flight))
    assert curve.in_flight[-1] == 0
    assert curve.steps_until(5.0) <= curve.steps_until(LIKELY_LEFT) <= curve.at_steps[-1]


def test_all_tokens_are_made_in_the_bulk_or_in_the_decline() -> None:
    curve = decline(LENGTHS, [100] * 20, 1_000, 20)
    begun = 20 * (LENGTHS.expected(100) - 100)

    whole = curve.bulk_steps * curve.slots + curve.slot_steps
    assert whole == pytest.approx(1_000 * LENGTHS.expected() + begun, rel=0.02)
    assert curve.in_flight[0] == pytest.approx(20, rel=0.05)


def test_the_end_is_that_of_the_longest_not_of_the_mean() -> None:
    few, many = decline(LENGTHS, [1] * 2, 0, 2), decline(LENGTHS, [1] * 200, 0, 200)

    assert few.bulk_steps == many.bulk_steps == 0
    assert many.steps_until(LIKELY_LEFT) > 3 * LENGTHS.expected()
    assert few.steps_until(LIKELY_LEFT) < many.steps_until(LIKELY_LEFT)


def test_the_likely_end_is_passed_by_half_of_the_draws() -> None:
    random = Random(5)
    likely = decline(LENGTHS, [1] * 3, 0, 3).steps_until(LIKELY_LEFT)
    true = [max(min(CAP, 1 + random.expovariate(1 / 300)) for _ in range(3)) for _ in range(400)]

    assert 0.4 < sum(each > likely for each in true) / 400 < 0.6
