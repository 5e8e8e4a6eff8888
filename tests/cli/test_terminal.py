"""The progress in a terminal: what it says, and that a lost or narrow one does not matter."""

import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from app.core.conditions import Condition, ConditionKind
from app.core.estimate import Estimate, Unknown
from app.core.states import PartitionState, RunState
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.figures import PartitionFigures, RunFigures
from app.figures.wording import headline, summary
from app.terminal import Lines, LiveTable, drawing, open_display

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
LEFT = Estimate(low_s=3_000, mid_s=3_600, high_s=4_200)


def partition(name: str, **changes: object) -> PartitionFigures:
    figures = PartitionFigures(
        id=PartitionId(1),
        name=name,
        class_name="short",
        state=PartitionState.ACTIVE,
        state_since=NOW,
        reason="",
        intake="tokenized",
        is_over=False,
        percent=42,
        counts=Counts(pending=5_000, running=150, ok=4_850),
        tokens=Tokens(received=6_100_000, kept=6_000_000, held=100_000),
        reserved_tokens=0,
        own_concurrency=None,
        token_budget_tokens=None,
        goal_samples=None,
        budget_reached=False,
        sealed_at=None,
        n_in_flight=150,
        speed_tokens_per_s=512.0,
        time_left=LEFT,
        last_token_at=NOW,
    )
    return replace(figures, **changes)  # type: ignore[arg-type]  # named by the tests


def run(**changes: object) -> RunFigures:
    figures = RunFigures(
        run_id=RunId(3),
        name="night",
        state=RunState.RUNNING,
        state_since=NOW,
        reason="",
        output_dir="/out",
        at=NOW,
        percent=42,
        token_budget_tokens=None,
        speed_tokens_per_s=1_034.0,
        time_left=LEFT,
        decided_by="short",
        conditions=(),
        partitions=(partition("B1_glaive"), partition("B2_opencodeinstruct")),
    )
    return replace(figures, **changes)  # type: ignore[arg-type]  # named by the tests


def test_the_headline_says_how_fast_how_long_and_whether_you_are_needed() -> None:
    sentence = headline(run())
    assert sentence.startswith("night: running, 42 %; 1,034 tok/s; done at ")
    assert "in 1h (50m to 1h 10m)" in sentence
    assert sentence.endswith("nothing needs you")


def test_what_needs_a_person_is_said_and_the_reason_with_it() -> None:
    stalled = Condition(kind=ConditionKind.STALLED, since=NOW, sentence="No token for 10 min.")
    failing = partition("B3_x", counts=Counts(failed=2), reason="disk full")
    paused = replace(failing, state=PartitionState.PAUSED)
    text = "\n".join(summary(run(conditions=(stalled,), partitions=(paused,))))
    assert "needs you, see below" in text
    assert "No token for 10 min." in text
    assert "2 samples failed in B3_x." in text
    assert "B3_x is paused: disk full" in text


def test_what_is_not_known_is_words_and_not_a_figure() -> None:
    unknown = Unknown(why="estimating: 2 of 5 answers have ended")
    one = partition("B1_x", time_left=unknown, speed_tokens_per_s=None)
    text = "\n".join(summary(run(speed_tokens_per_s=None, time_left=unknown, partitions=(one,))))
    assert "tok/s" not in text
    assert text.count("estimating: 2 of 5 answers have ended") == 2


def test_words_of_a_server_do_not_reach_the_terminal_as_orders() -> None:
    text = "\n".join(summary(run(reason="halted: \x1b[2J\x1b]0;owned\x07 401")))
    assert "\x1b" not in text
    assert "\x07" not in text


@pytest.mark.parametrize("width", [10, 20, 40, 60, 80, 100, 120, 250])
def test_a_terminal_of_any_width_is_enough(width: int) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None)
    display = LiveTable(console)
    names = tuple(partition(f"B{n}_with_quite_a_long_name") for n in range(1, 9))
    for _ in range(3):
        display.show(run(partitions=names))
    display.close()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert max(len(line.rstrip("\r")) for line in plain.splitlines()) <= width
    assert "B" in plain


def test_square_brackets_in_names_are_text() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=120, color_system=None)
    console.print(drawing(run(partitions=(partition("x", remarks=("[bold]boom[/bold]",)),)), 120))
    assert "[bold]boom[/bold]" in stream.getvalue()


def test_lines_come_each_ten_seconds_and_at_every_change() -> None:
    stream = io.StringIO()
    display = Lines(stream)
    for second in range(25):
        display.show(run(at=NOW + timedelta(seconds=second)))
    assert stream.getvalue().count("night: running") == 3
    display.show(run(at=NOW + timedelta(seconds=25), state=RunState.PAUSED))
    assert stream.getvalue().count("night: paused") == 1


def test_a_night_of_lines_is_not_a_book_and_no_change_is_left_out() -> None:
    stream = io.StringIO()
    display = Lines(stream)
    for second in range(0, 10 * 3600, 5):
        display.show(run(at=NOW + timedelta(seconds=second)))
    n_blocks = stream.getvalue().count("night: running")
    assert 60 + 110 + 45 < n_blocks < 60 + 110 + 55
    display.show(run(at=NOW + timedelta(hours=10, seconds=1), state=RunState.FINISHED))
    assert stream.getvalue().count("night: finished") == 1


def test_the_last_look_is_written_at_the_end_and_only_once() -> None:
    stream = io.StringIO()
    display = Lines(stream)
    display.show(run())
    display.show(run(at=NOW + timedelta(seconds=1), percent=43))
    display.close()
    display.close()
    assert stream.getvalue().count("night: running, 42 %") == 1
    assert stream.getvalue().count("night: running, 43 %") == 1


class _Gone(io.StringIO):
    """A terminal that has gone away."""

    n_writes = 0

    def write(self, text: str, /) -> int:  # noqa: ARG002 - the stream's signature
        self.n_writes += 1
        raise OSError(5, "Input/output error")

    def isatty(self) -> bool:
        return True


def test_prc_02_a_lost_terminal_is_noticed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    gone = _Gone()
    for display in (Lines(gone), open_display(gone)):
        display.show(run())
        after_one = gone.n_writes
        assert after_one > 0
        display.show(run(state=RunState.PAUSED))
        display.close()
        assert gone.n_writes == after_one


def test_without_an_output_nothing_is_shown(tmp_path: Path) -> None:
    open_display(None).show(run())
    closed = (tmp_path / "x").open("w")
    closed.close()
    open_display(closed).show(run())


def test_a_file_gets_lines(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as stream:
        display = open_display(stream)
        display.show(run())
    assert "B1_glaive" in (tmp_path / "x").read_text()
