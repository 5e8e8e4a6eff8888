"""How wrong shown ends were: by hand-made courses whose truth is known."""

import re
from xml.etree import ElementTree

import pytest

from app.core.eta_drawing import Panel, svg, terminal
from app.core.eta_errors import Idle, Shown, Stretch, Verdict

NEVER = Idle([])


def course(factor: float, *, n: int = 1_000, spread: float = 1.2, until: float = 1.0) -> Shown:
    """Return 10 tokens a second for n seconds, the time left shown as so many times the truth."""
    shown = Shown()
    for second in range(int(n * until) + 1):
        truth = n - second
        left = (factor * truth / spread, factor * truth, factor * truth * spread)
        shown.add(float(second), 10 * second, left)
    return shown


def until(end_s: float, end_tokens: int) -> list[Stretch]:
    return [Stretch(begin_s=0.0, end_s=end_s, end_tokens=end_tokens)]


def errors(verdict: Verdict) -> list[float | None]:
    return [
        None if each.error_ratio is None else round(each.error_ratio, 3) for each in verdict.marks
    ]


def test_a_true_end_has_no_error_and_its_range_holds() -> None:
    verdict = course(1.0).judge(until(1_000.0, 10_000), NEVER)
    assert errors(verdict) == [0.0] * 7
    assert (verdict.median_from_5, verdict.median_from_25, verdict.held_ratio) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(("factor", "error"), [(1.5, 0.5), (0.5, -0.5)])
def test_an_end_too_late_is_positive_too_soon_negative(factor: float, error: float) -> None:
    verdict = course(factor).judge(until(1_000.0, 10_000), NEVER)
    assert errors(verdict) == [error] * 7
    assert verdict.median_from_5 == pytest.approx(0.5)
    # the last seconds are within the rounding of what is stored
    assert verdict.held_ratio is not None
    assert verdict.held_ratio < 0.02


def test_prg_05_pauses_and_time_without_a_service_are_no_error() -> None:
    """An hour of pause in the middle: each end that was shown before it was right all the same."""
    shown = Shown()
    idle = Idle([(500.0, 4_100.0), (4_000.0, 4_100.0)])
    for second in range(1_001):
        at_s = float(second if second <= 500 else second + 3_600)
        truth = 1_000.0 - second
        shown.add(at_s, 10 * second, (truth, truth, truth))
    right = shown.judge(until(4_600.0, 10_000), idle)
    assert errors(right) == [0.0] * 7
    assert right.held_ratio == 1.0
    wrong = shown.judge(until(4_600.0, 10_000), NEVER)
    assert wrong.median_from_5 is not None
    assert wrong.median_from_5 > 0.5


def test_where_nothing_was_shown_nothing_is_judged() -> None:
    shown = Shown()
    for second in range(1_001):
        left = None if second < 200 else (1_000.0 - second,) * 3
        shown.add(float(second), 10 * second, left)
    verdict = shown.judge(until(1_000.0, 10_000), NEVER)
    assert errors(verdict) == [None, None, None, 0.0, 0.0, 0.0, 0.0]
    assert verdict.n_shown == 800


def test_thinned_rows_weigh_as_much_as_the_time_they_stand_for() -> None:
    """One row for 600 s that did not hold, 400 rows of a second each that did."""
    shown = Shown()
    shown.add(0.0, 0, (1.0, 2.0, 3.0))
    for second in range(600, 1_000):
        shown.add(float(second), 10 * second, (0.0, 1_000.0 - second, 1_000.0))
    verdict = shown.judge(until(1_000.0, 10_000), NEVER)
    assert verdict.held_ratio == pytest.approx(0.4)


def test_rows_after_the_end_and_out_of_order_do_not_count() -> None:
    shown = course(1.0)
    shown.add(5.0, 3, (9e9, 9e9, 9e9))
    shown.add(2_000.0, 10_000, (9e9, 9e9, 9e9))
    assert errors(shown.judge(until(1_000.0, 10_000), NEVER)) == [0.0] * 7


def test_each_stretch_is_judged_by_its_own_end() -> None:
    """1,000 s shown right, then 20 s shown three times too long: both count, for what they are."""
    shown = course(1.0)
    for second in range(20):
        left = 3.0 * (20 - second)
        shown.add(2_000.0 + second, 10_000 + 50 * second, (left, left, left))
    both = [
        *until(1_000.0, 10_000),
        Stretch(begin_s=2_000.0, end_s=2_020.0, end_tokens=11_000),
    ]
    verdict = shown.judge(both, NEVER)
    assert errors(verdict) == [0.0] * 7
    assert (verdict.n_ends, verdict.n_shown, verdict.median_from_5) == (2, 1_020, 0.0)
    assert verdict.held_ratio == pytest.approx(1_000 / 1_020, abs=0.001)
    assert verdict.curve[0].truth_s == 1_000.0  # of the longest
    late = shown.judge(both[:1], NEVER)
    assert (late.n_ends, late.n_shown, late.held_ratio) == (1, 1_000, 1.0)


def test_shares_are_of_the_stretchs_own_work() -> None:
    """After 10,000 tokens without any end shown, 1,000 more: wrong for their first fifth only."""
    shown = Shown()
    shown.add(0.0, 0, None)
    for second in range(100):
        left = (3.0 if second < 20 else 1.0) * (100 - second)
        shown.add(2_000.0 + second, 10_000 + 10 * second, (left, left, left))
    both = [
        *until(1_000.0, 10_000),
        Stretch(begin_s=2_000.0, end_s=2_100.0, end_tokens=11_000),
    ]
    verdict = shown.judge(both, NEVER)
    assert verdict.median_from_25 == 0.0
    assert errors(verdict)[-1] == 2.0  # 90 % of all is at the second's begin


def test_an_end_that_only_the_rows_tell_is_where_nothing_came_after_it() -> None:
    shown = Shown()
    for at_s, received, left in ((0, 0, 9), (10, 5, 0), (20, 8, 0), (30, 8, 0), (40, 9, 5)):
        shown.add(float(at_s), received, (left, left, left))
    assert shown.over_since_s(0.0, 35.0) == 20.0  # what showed nothing left at 10 s was no end
    assert shown.over_since_s(25.0, 35.0) == 30.0
    assert shown.over_since_s(0.0, 45.0) is None
    assert shown.over_since_s(31.0, 35.0) is None
    assert (shown.tokens_at(-1.0), shown.tokens_at(39.0), shown.tokens_at(40.0)) == (0, 8, 9)


def test_nothing_at_all_is_a_verdict_without_figures() -> None:
    verdict = Shown().judge(until(1_000.0, 0), NEVER)
    assert verdict.n_shown == 0
    assert verdict.held_ratio is None
    assert verdict.curve == ()


def test_the_curve_of_a_long_run_stays_short() -> None:
    assert len(course(1.0, n=100_000).judge(until(100_000.0, 1_000_000), NEVER).curve) < 1_000


def panel(factor: float, name: str = "B1_chat") -> Panel:
    verdict = course(factor).judge(until(1_000.0, 10_000), NEVER)
    return Panel(name=name, said="median error 0 %", curve=verdict.curve)


def test_the_terminal_shows_the_truth_as_a_fall_and_what_was_shown_over_it() -> None:
    lines = terminal(panel(1.4))
    assert len({line.index("┤") for line in lines if "┤" in line}) == 1
    assert lines[0].startswith("25m ┤")  # 1.5 times the whole: what was beyond it lies at the edge
    body = [line.partition("┤")[2] for line in lines if "┤" in line]
    first = [row for row, line in enumerate(body) if line.ljust(64)[32] == "●"]
    truth = [row for row, line in enumerate(body) if line.ljust(64)[32] == "·"]
    assert first < truth
    assert "16m 40s" in "".join(lines)


def test_the_drawing_is_well_formed_whatever_the_names_are() -> None:
    text = svg('night <script>"&', [panel(1.0, "a<b>&\x1b[2J"), panel(0.7)])
    root = ElementTree.fromstring(text)  # noqa: S314 - our own text
    names = [each.text for each in root.iter() if each.text]
    assert any("night <script>" in name for name in names)
    assert "\x1b" not in text
    assert len(root.findall("{http://www.w3.org/2000/svg}g")) == 2
    assert not re.search(r"nan|inf", text)


def test_a_drawing_without_any_end_says_so() -> None:
    assert "No end to judge by yet" in svg("night", [])
    assert terminal(Panel(name="x", said="", curve=())) == []
