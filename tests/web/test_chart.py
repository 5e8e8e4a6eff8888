"""The chart: its lines can be read back, its scale is structure, and its axes are true."""

import doctest
import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clock import iso
from app.core.histogram import histogram
from app.core.series import Chart
from app.core.spread import Spread
from app.web import bars, charts, lengths, lines, wording
from app.web.charts import chart, reading
from app.web.compare import sides
from app.web.draft import Draft
from app.web.frames import Differ
from app.web.gallery.invented import CHART, NOW, RUN
from app.web.lengths import Answers
from app.web.lines import CHART_UNITS, CHART_WIDTH, chart_path, nice_top, steps_path
from app.web.marks import Mark
from app.web.partition import lists
from app.web.rendering import draw
from app.web.sheet import Sheet

VALUES = st.lists(st.none() | st.integers(0, 20_000), min_size=2, max_size=160)
STEPS = st.lists(st.none() | st.integers(0, 500), min_size=2, max_size=160)


@pytest.mark.parametrize("module", [lines, charts, wording, lists, lengths, bars, sides])
def test_the_examples_are_true(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # modules, all of them


def read_line(d: str, n: int, top: float) -> list[float | None]:
    """Read a line as the page's script does."""
    found: list[float | None] = [None] * n
    x = y = 0
    for kind, across, down in re.findall(r"([Ml])(-?\d+) ?(-?\d+)", d):
        x, y = (int(across), int(down)) if kind == "M" else (x + int(across), y + int(down))
        found[round(x / (CHART_WIDTH / (n - 1)))] = top * (1 - y / CHART_UNITS)
    return found


def read_steps(d: str, n: int, top: int) -> list[float | None]:
    found: list[float | None] = [None] * n
    x = y = 0

    def place(at: int) -> int:
        return round(at / (CHART_WIDTH / (n - 1)))

    for kind, one, two in re.findall(r"([MHV])(\d+)(?: (\d+))?", d):
        if kind == "M":
            x, y = int(one), int(two)
        elif kind == "H":
            for at in range(place(x), place(int(one)) + 1):
                found[at] = top - y
            x = int(one)
        else:
            y = int(one)
        found[place(x)] = top - y
    return found


@settings(max_examples=50)
@given(VALUES)
def test_a_line_can_be_read_back_as_finely_as_it_is_drawn(values: list[int | None]) -> None:
    top = nice_top(max((value for value in values if value is not None), default=0))
    back = read_line(chart_path(values, top), len(values), top)
    for value, found in zip(values, back, strict=True):
        assert (value is None) == (found is None)
        assert value is None or found == pytest.approx(value, abs=top / CHART_UNITS)


@settings(max_examples=50)
@given(STEPS)
def test_steps_can_be_read_back_exactly(values: list[int | None]) -> None:
    top = round(nice_top(max((value for value in values if value is not None), default=0)))
    assert read_steps(steps_path(values, top), len(values), top) == values


def test_a_line_of_a_whole_chart_is_short() -> None:
    values = [10_000 + 3_000 * (n % 7) / 7 + 500 * (n % 3) for n in range(160)]
    assert len(chart_path(values, 15_000)) < 1_500


def drawn(data: Chart, marks: tuple[Mark, ...] = ()) -> Sheet:
    draft = Draft(NOW)
    return draft.sheet(chart(draft, RUN, data, "6h", marks), "t")


RICH = replace(
    CHART,
    concurrency_requests=(64.0,) * 80 + (96.0,) * 80,
    aways=((NOW - timedelta(hours=3), NOW - timedelta(hours=2)),),
)


def test_a_moment_is_read_in_words_and_what_is_not_known_is_left_out() -> None:
    assert reading(RICH, 159) == "16k tok/s, server 15.2k, concurrency 96"
    assert reading(RICH, 62) == "nothing recorded, server 15.2k, concurrency 64"
    assert reading(replace(RICH, server_tokens_per_s=(), concurrency_requests=()), 0) == (
        "15k tok/s"
    )


def test_the_newest_point_says_how_long_it_is_and_labels_are_round() -> None:
    sheet = drawn(RICH)

    assert sheet.texts["ch-out"].startswith("newest 2m 15s: 16k tok/s")
    assert [sheet.texts[f"ch-y{n}"] for n in range(5)] == ["20k", "15k", "10k", "5k", "0"]
    low = replace(RICH, own_tokens_per_s=(9.0,), server_tokens_per_s=())
    assert [drawn(low).texts[f"ch-y{n}"] for n in range(6)] == ["10", "8", "6", "4", "2", "0"]


def test_marks_and_absences_stand_where_they_happened() -> None:
    mark = Mark(entry_id=123, at=NOW - timedelta(hours=1.5), says="stalled for 14 min", rank=0)

    sheet = drawn(RICH, (mark,))
    markup = str(draw(sheet.root, sheet))

    assert sheet.attrs["ch-m1"] == {"x": "75.0%", "y": "0"}
    assert sheet.paths["ch-away"] == f"M480 0h160v{CHART_UNITS}h-160z"
    assert 'href="/runs/7/activity#e123"' in markup
    assert "stalled for 14 min" in markup


def test_another_scale_is_another_structure_so_that_line_and_labels_change_together() -> None:
    faster = replace(RICH, own_tokens_per_s=(40_000.0,) * 160)
    differ = Differ(draw, "boot", drawn(RICH), number=1, at=NOW)

    frame = differ.next(drawn(faster), number=2, at=NOW)

    assert frame is not None
    assert chart_path(faster.own_tokens_per_s, 40_000) in frame["html"]


def test_a_chart_whose_time_goes_on_sends_no_markup() -> None:
    later = replace(
        RICH, begin=RICH.begin + timedelta(minutes=2), end=RICH.end + timedelta(minutes=2)
    )
    mark = Mark(entry_id=1, at=NOW - timedelta(hours=1), says="paused", rank=2)
    differ = Differ(draw, "boot", drawn(RICH, (mark,)), number=1, at=NOW)

    frame = differ.next(drawn(later, (mark,)), number=2, at=NOW)

    assert frame is not None
    assert "html" not in frame
    assert frame["attrs"]["ch-box"]["data-begin"] == iso(later.begin)


def test_every_answer_stands_in_one_bar() -> None:
    answers = Spread.of([1, 70, 90, 5_000, 16_384, 40_000])
    bars = histogram(answers, 16_384)
    assert sum(bar.n for bar in bars) == 6
    assert all(one.upper + 1 == other.least for one, other in pairwise(bars))


def test_lengths_that_nobody_counted_are_said_so_and_no_zero_is_shown() -> None:
    assert lengths.said(Answers(), 100) == "no answer has ended since lengths are counted"
    assert lengths.said(Answers(lengths=Spread.of([100] * 3), n_cut=1), 100).endswith(
        "33.3 % cut at the limit of 100"
    )
