"""The forecast against what can be counted by hand, and its bounds."""

from math import isfinite
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.forecast import Forecast, forecast
from app.core.lengths import Lengths
from app.core.rates import StepCurve
from app.core.works import Server, Work

# ten tokens a second for each stream, however many run
FLAT = Server(curve=StepCurve(start_s=0.1, per_request_s=1e-12))
EQUAL = Lengths.learn(finished=[100] * 200, running=[], cap=1_000)
_DICE = Random(2)
MIXED = Lengths.learn(
    finished=[min(1_000, 1 + int(_DICE.expovariate(1 / 200))) for _ in range(400)],
    running=[],
    cap=1_000,
)


def work(name: str, n_fresh: int, *, group: str = "short", **more: object) -> Work:
    plain: dict[str, object] = {"lengths": EQUAL, "begun_tokens": ()}
    return Work(name=name, group=group, n_fresh=n_fresh, **(plain | more))  # type: ignore[arg-type]  # by name


def run_of(*works: Work, limit: float = 10, server: Server = FLAT) -> Forecast:
    return forecast(works, server, {"short": limit, "long": limit})


def test_equal_answers_take_as_long_as_they_are() -> None:
    found = run_of(work("A", 1_000))

    # 1,000 answers of 100 tokens through 10 slots at 10 tokens a second
    assert found.run.mid_s == pytest.approx(1_000, rel=0.03)
    assert found.decided_by == "A"


def test_slots_of_one_that_ends_go_to_the_others_of_its_class() -> None:
    together = run_of(work("A", 500), work("B", 1_500))

    assert together.run.mid_s == pytest.approx(2_000, rel=0.03)
    assert together.ends["A"].mid_s == pytest.approx(1_000, rel=0.05)
    assert together.decided_by == "B"


def test_another_class_gets_no_slots_but_a_faster_server() -> None:
    busy = Server(curve=StepCurve(start_s=0.0, per_request_s=0.01))  # 100 tokens a second in all
    found = run_of(work("A", 500), work("B", 1_000, group="long"), server=busy)

    assert found.ends["A"].mid_s == pytest.approx(1_000, rel=0.05)
    assert found.ends["B"].mid_s == pytest.approx(1_500, rel=0.05)


def test_in_sequence_one_begins_when_the_other_has_ended() -> None:
    found = run_of(work("A", 500), work("B", 500, after="A"))

    assert found.ends["A"].mid_s == pytest.approx(500, rel=0.05)
    assert found.ends["B"].mid_s == pytest.approx(1_000, rel=0.05)


def test_what_a_run_budget_does_not_allow_is_not_waited_for() -> None:
    works = (work("A", 500), work("B", 500))
    limits = {"short": 10.0}
    all_of_it = forecast(works, FLAT, limits)
    half = forecast(works, FLAT, limits, claims_tokens=50_000)

    assert all_of_it.run.mid_s == pytest.approx(1_000, rel=0.05)
    assert half.run.mid_s == pytest.approx(500, rel=0.07)
    assert forecast(works, FLAT, limits, claims_tokens=0).run.mid_s < 20


def test_the_last_answers_run_alone_and_faster() -> None:
    busy = Server(curve=StepCurve(start_s=0.01, per_request_s=0.01))
    slow = Server(curve=StepCurve(start_s=0.01 + 0.01 * 64, per_request_s=1e-12))
    last = work("A", 0, lengths=MIXED, begun_tokens=[1] * 64)

    alone = forecast([last], busy, {"short": 64}).run.mid_s
    crowded = forecast([last], slow, {"short": 64}).run.mid_s
    assert alone < crowded / 2


def test_a_queue_that_empties_makes_answers_quicker() -> None:
    half = Server(curve=StepCurve(start_s=0.1, per_request_s=1e-12), running_ratio=0.5)
    works = [
        work("A", 500, n_in_flight=10, tokens_per_slot_s=5),
        work("B", 1_000, group="long", n_in_flight=10, tokens_per_slot_s=5),
    ]
    found = forecast(works, half, {"short": 10.0, "long": 10.0})

    # ten of twenty run until A has ended, then all ten of B
    assert found.ends["A"].mid_s == pytest.approx(1_000, rel=0.1)
    assert found.ends["B"].mid_s == pytest.approx(1_500, rel=0.1)


def test_the_range_is_wider_where_less_is_known() -> None:
    def width(n: int) -> float:
        lengths = Lengths.learn(finished=[50, 150] * n, running=[], cap=1_000)
        run = run_of(work("A", 1_000, lengths=lengths)).run
        return run.high_s / run.low_s

    assert 1 < width(500) < width(5)


def test_the_same_seed_draws_the_same() -> None:
    works = [work("A", 300, lengths=MIXED)]

    assert run_of(*works) == run_of(*works)
    assert forecast(works, FLAT, {"short": 10}, seed=1) != forecast(works, FLAT, {"short": 10})


def test_nothing_left_takes_no_time() -> None:
    assert run_of().run.high_s == 0.0
    assert run_of(work("A", 0)).run.mid_s == 0.0


WORKS = st.lists(
    st.builds(
        work,
        name=st.uuids().map(str),
        n_fresh=st.integers(0, 5_000),
        group=st.sampled_from(["short", "long"]),
        lengths=st.lists(st.integers(0, 1_200), max_size=12).map(
            lambda seen: Lengths.learn(finished=seen, running=[5, 900], cap=1_000)
        ),
        begun_tokens=st.lists(st.integers(0, 1_200), max_size=12),
        n_in_flight=st.floats(0, 50),
        tokens_per_slot_s=st.floats(0, 200),
        observed_tokens=st.floats(0, 1e7),
    ),
    min_size=1,
    max_size=4,
)
SERVERS = st.builds(
    Server,
    curve=st.builds(
        StepCurve,
        start_s=st.floats(1e-4, 10),
        per_request_s=st.floats(1e-6, 1),
        half_spread=st.floats(0, 2),
    ),
    slowness=st.floats(0.1, 10),
    running_ratio=st.none() | st.floats(0.01, 1),
)


@settings(max_examples=60)
@given(works=WORKS, server=SERVERS, claims=st.none() | st.floats(-10, 1e7))
def test_an_estimate_is_finite_ordered_and_never_negative(
    works: list[Work], server: Server, claims: float | None
) -> None:
    found = forecast(works, server, {"short": 20, "long": 5}, claims_tokens=claims)

    for each in (*found.ends.values(), found.run):
        assert 0 <= each.low_s <= each.mid_s <= each.high_s
        assert isfinite(each.high_s)
    assert found.run.mid_s >= max(each.mid_s for each in found.ends.values())


def test_a_speed_that_is_too_small_for_a_number_divides_nothing() -> None:
    crawling = work("A", 10, n_in_flight=5e-324, tokens_per_slot_s=0.1)
    assert isfinite(run_of(crawling).run.high_s)


@settings(max_examples=30)
@given(n=st.integers(1, 3_000), more=st.integers(1, 3_000))
def test_more_to_do_never_ends_sooner(n: int, more: int) -> None:
    sooner, later = (run_of(work("A", each, lengths=MIXED)).run.mid_s for each in (n, n + more))

    assert sooner <= later * 1.001
