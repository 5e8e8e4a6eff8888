"""Bounds of delays, and the way down and up again after busy answers."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.retry import Shed, backoff_s, probe_gap_s


@given(charged=st.integers(0, 10_000), seed=st.integers())
def test_a_backoff_lies_between_half_and_all_of_its_doubled_delay(charged: int, seed: int) -> None:
    whole_s = min(60.0, 2.0 ** min(charged, 10))

    assert whole_s / 2 <= backoff_s(charged, Random(seed)) <= whole_s


def test_backoffs_of_one_moment_are_spread() -> None:
    random = Random(3)

    assert len({backoff_s(2, random) for _ in range(50)}) == 50


def test_srv_02_a_minute_without_server_costs_few_looks() -> None:
    random, waited_s, looks = Random(5), 0.0, 0

    while waited_s < 60:
        waited_s += probe_gap_s(looks, random)
        looks += 1

    assert 5 <= looks <= 12


@given(n=st.integers(0, 10_000), seed=st.integers())
def test_a_probe_gap_stays_within_a_quarter_and_thirty_seconds(n: int, seed: int) -> None:
    assert 0.25 <= probe_gap_s(n, Random(seed)) <= 30


def test_srv_17_a_busy_answer_halves_what_is_allowed() -> None:
    assert Shed().allowed(64, 100.0) == 64
    assert Shed().on_busy(100.0).allowed(64, 100.0) == 32


def test_busy_answers_of_one_moment_are_one_message() -> None:
    shed = Shed()
    for i in range(60):
        shed = shed.on_busy(100.0 + i / 60)

    assert shed.allowed(64, 101.0) == 32
    assert shed.on_busy(102.5).allowed(64, 102.5) < 32


def test_a_first_busy_answer_counts_even_at_the_clock_s_beginning() -> None:
    assert Shed().on_busy(0.5).allowed(64, 0.5) == 32


def test_the_share_recovers_by_itself() -> None:
    shed = Shed(hold_s=2, double_s=15).on_busy(100.0)

    allowed = [shed.allowed(64, 100.0 + t) for t in (0, 2, 9.5, 17, 1e9)]

    assert allowed == [32, 32, 45, 64, 64]


@given(
    gaps_s=st.lists(st.floats(0, 1000), max_size=40),
    limit=st.integers(0, 4000),
    later_s=st.floats(0, 1e9),
)
def test_allowed_is_never_above_the_limit_nor_nothing(
    gaps_s: list[float], limit: int, later_s: float
) -> None:
    shed, now_s = Shed(), 0.0
    for gap_s in gaps_s:
        now_s += gap_s
        shed = shed.on_busy(now_s)

    at_once, later = shed.allowed(limit, now_s), shed.allowed(limit, now_s + later_s)

    assert min(limit, 1) <= at_once <= later <= limit


@pytest.mark.parametrize("limit", [0, 1])
def test_a_limit_of_nought_stays_nought_and_of_one_stays_one(limit: int) -> None:
    assert Shed().on_busy(1.0).allowed(limit, 1.0) == limit
