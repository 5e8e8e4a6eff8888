"""The recent past of a run: where it begins, what it forgets, what it says."""

import pytest

from app.core.pace import Beat, Pace
from app.core.types import PartitionId

ONE, TWO = PartitionId(1), PartitionId(2)


def fed(
    rates: list[int], *, begin: int = 0, at_s: float = 0.0, pace: Pace | None = None
) -> tuple[Pace, float, int]:
    """Feed one second after the other, so many tokens in each; return also when and how many."""
    pace, received = pace or Pace(), begin
    pace.add(at_s, {ONE: Beat(received, 4)}, "same")
    for rate in rates:
        at_s, received = at_s + 1, received + rate
        pace.add(at_s, {ONE: Beat(received, 4)}, "same")
    return pace, at_s, received


def test_prg_01_tokens_of_an_earlier_session_are_no_speed() -> None:
    pace, at_s, _ = fed([100] * 20, begin=90_000_000)
    seen = pace.seen(at_s)

    assert seen.went[ONE].tokens_per_slot_s == pytest.approx(25.0)
    assert seen.went[ONE].observed_tokens <= 2_000


def test_prg_01_one_look_is_no_speed() -> None:
    pace, at_s, _ = fed([])

    assert pace.seen(at_s).observed_s == 0.0
    assert pace.seen(at_s).curve is None


def test_the_wait_before_the_first_token_is_not_counted() -> None:
    pace, at_s, _ = fed([0] * 300 + [100] * 21)
    seen = pace.seen(at_s)

    assert seen.observed_s == 20.0
    assert seen.went[ONE].tokens_per_slot_s == pytest.approx(25.0)


def test_a_control_change_begins_anew_and_keeps_what_is_known_of_the_server() -> None:
    pace, at_s, received = fed([100] * 60)
    pace.add(at_s + 1, {ONE: Beat(received, 4)}, "other")
    seen = pace.seen(at_s + 1)

    assert (seen.observed_s, seen.n_changes) == (0.0, 1)
    assert seen.curve is not None
    pace.forget_server()
    assert pace.seen(at_s + 1).curve is None


def test_prg_05_the_window_is_afresh_after_a_pause() -> None:
    pace, at_s, received = fed([100] * 60)
    pace.forget()
    pace, at_s, _ = fed([50] * 11, begin=received, at_s=at_s + 5_000, pace=pace)
    seen = pace.seen(at_s)

    assert seen.observed_s == 10.0
    assert seen.went[ONE].tokens_per_slot_s == pytest.approx(12.5)


def test_newer_pieces_count_more_and_those_of_two_hours_ago_not_at_all() -> None:
    pace, at_s, _ = fed([100] * 3_600 + [50] * 3_600)
    assert pace.seen(at_s).went[ONE].tokens_per_slot_s == pytest.approx(15.0, abs=0.3)

    pace, at_s, _ = fed([100] * 600 + [50] * 7_300)
    assert pace.seen(at_s).went[ONE].tokens_per_slot_s == pytest.approx(12.5, abs=0.01)


def test_what_waits_in_the_queue_does_not_run() -> None:
    pace = Pace()
    for second in range(40):
        beats = {ONE: Beat(60 * second, 6), TWO: Beat(40 * second, 4)}
        pace.add(float(second), beats, "same", 0.5)
    seen = pace.seen(39.0)

    assert seen.running_ratio == pytest.approx(0.5)
    assert seen.curve is not None
    assert seen.curve.step_s(5) * seen.slowness == pytest.approx(5 / 100, rel=0.01)


def test_seconds_without_a_token_are_part_of_the_pace_of_a_slow_server() -> None:
    pace, at_s, _ = fed(([0] * 29 + [300]) * 6)

    assert pace.seen(at_s).went[ONE].tokens_per_slot_s == pytest.approx(2.5)


def test_srv_03_a_collapse_voids_what_was_seen_before_and_is_no_control_change() -> None:
    pace, at_s, received = fed([800] * 600)
    pace, at_s, received = fed([50] * 60, begin=received, at_s=at_s, pace=pace)
    assert pace.seen(at_s).went[ONE].tokens_per_slot_s > 100

    pace, at_s, _ = fed([50] * 11, begin=received, at_s=at_s, pace=pace)
    seen = pace.seen(at_s)
    assert seen.went[ONE].tokens_per_slot_s == pytest.approx(12.5)
    assert seen.curve is not None
    assert 4 / (seen.curve.step_s(4) * seen.slowness) == pytest.approx(50)
    # it has run steadily all the time, under the same controls
    assert seen.observed_s == pytest.approx(670, abs=1)
    assert seen.n_changes == 0


def test_srv_03_a_recovery_voids_the_collapse() -> None:
    pace, at_s, received = fed([800] * 600 + [50] * 75)
    pace, at_s, received = fed([800] * 71, begin=received, at_s=at_s, pace=pace)
    seen = pace.seen(at_s)

    assert seen.went[ONE].tokens_per_slot_s == pytest.approx(200, rel=0.01)
    assert seen.curve is not None
    assert 4 / (seen.curve.step_s(4) * seen.slowness) == pytest.approx(800, rel=0.02)


def test_after_a_control_change_the_wait_begins_anew_also_behind_a_collapse() -> None:
    pace, at_s, received = fed([800] * 600 + [50] * 75)
    pace.add(at_s + 1, {ONE: Beat(received, 4)}, "other")

    assert pace.seen(at_s + 1).observed_s == 0.0
