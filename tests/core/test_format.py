"""Figures as words: the examples of the module, and what holds for every value."""

import doctest
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import format as words
from app.core.estimate import Estimate, Unknown

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def test_the_examples_of_the_module_hold() -> None:
    result = doctest.testmod(words)
    assert result.attempted > 8
    assert result.failed == 0


@given(st.integers(0, 10**13))
def test_tokens_never_look_like_more_than_they_are(n: int) -> None:
    text = words.tokens(n)
    scale = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}.get(text[-1], 1)
    shown = float(text.rstrip("kMGT")) * scale
    assert shown <= n + 1e-6 * scale
    assert shown >= n * 0.98 - 1
    assert len(text) <= 6


@given(st.floats(0, 10**8))
def test_a_span_reads_back_as_itself_rounded_down(seconds: float) -> None:
    units = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
    parts = re.findall(r"(\d+) ?([dhms])", words.span(seconds))
    read_back = sum(int(number) * units[unit] for number, unit in parts)
    smallest = units[parts[-1][1]] if len(parts) == 2 else max(1, units[parts[0][1]] // 24)
    assert read_back <= seconds
    assert seconds - read_back < max(smallest, 60 if parts[0][1] == "h" else 1) + 3600 * (
        parts[0][1] == "d"
    )


@pytest.mark.parametrize("text", [words.whole(None), words.tokens(None), words.speed(None)])
def test_what_is_not_known_is_said_so(text: str) -> None:
    assert text == "unknown"


def test_an_unknown_end_has_no_clock_time() -> None:
    assert words.done_at(Unknown(why="stalled"), NOON) is None
    assert words.time_left(Unknown(why="stalled")) == "stalled"


def test_an_end_beyond_a_week_is_not_given_to_the_minute() -> None:
    far = Estimate(low_s=8e5, mid_s=9e5, high_s=1e6)
    assert words.time_left(far) == "≥ 7 days"
    assert words.done_at(far, NOON) is None


@given(st.floats(0, 6e5), st.floats(0, 1e5), st.integers(-12, 14))
def test_the_clock_time_is_near_the_end(mid_s: float, spread_s: float, zone_h: int) -> None:
    now = NOON.astimezone(timezone(timedelta(hours=zone_h)))
    left = Estimate(low_s=max(0.0, mid_s - spread_s), mid_s=mid_s, high_s=mid_s + spread_s)
    text = words.done_at(left, now)
    assert text is not None
    found = re.search(r"(\d\d):(\d\d)", text)
    if found is None:
        assert mid_s >= 6 * 86_400 - 3600
        return
    end = now + timedelta(seconds=mid_s)
    shown_min, true_min = int(found[1]) * 60 + int(found[2]), end.hour * 60 + end.minute
    assert min((shown_min - true_min) % 1440, (true_min - shown_min) % 1440) <= 16


@given(st.text())
def test_foreign_text_is_one_line_that_a_terminal_does_not_obey(text: str) -> None:
    line = words.one_line(text)
    assert "\n" not in line
    assert line.isprintable()
