"""The progress of a run in a terminal: a table that stays in place, or plain lines in a file.

Owns layout and how often something is shown; figures and their words come from elsewhere.
Invariant: an output that is lost (closed terminal, broken pipe) is noticed once and never matters
to the run: from then on nothing is shown.
"""

from contextlib import suppress
from datetime import datetime
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.core import format as words
from app.core.conditions import ConditionKind
from app.figures import PartitionFigures, RunFigures
from app.figures.wording import (
    further,
    headline,
    samples_text,
    state_text,
    summary,
    time_left_text,
)

LINE_EVERY_S = 10.0
# until so long after the first block, one each so many seconds: a night fills no disk
_PACES = ((600.0, LINE_EVERY_S), (7_200.0, 60.0))
_LAST_PACE_S = 600.0
_WIDE, _MIDDLE = 110, 76


class Display(Protocol):
    def show(self, figures: RunFigures) -> None:
        """Show the figures, if it is time to."""

    def close(self) -> None:
        """Leave the terminal as it is to be found."""


def open_display(stream: TextIO | None) -> Display:
    """Return what suits the stream: a live table on a terminal, else lines, else nothing."""
    if stream is None or stream.closed:
        return _Nothing()
    console = Console(file=stream)
    try:
        is_terminal = stream.isatty() and not console.is_dumb_terminal
    except (OSError, ValueError):
        return _Nothing()
    return LiveTable(console) if is_terminal else Lines(stream)


class _Nothing:
    def show(self, figures: RunFigures) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Do nothing."""


class LiveTable:
    """Redraws a table in place, about once a second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(
            console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._is_lost = False
        self._is_open = False

    def show(self, figures: RunFigures) -> None:
        if self._is_lost:
            return
        try:
            if not self._is_open:
                self._live.start()
                self._is_open = True
            self._live.update(drawing(figures, self._console.width), refresh=True)
        except (OSError, ValueError):
            self._is_lost = True

    def close(self) -> None:
        if self._is_open and not self._is_lost:
            with suppress(OSError, ValueError):
                self._live.stop()
        self._is_open = False


class Lines:
    """Writes the headline and one line per partition, ever more seldom, and at every change."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_lost = False
        self._first_at: datetime | None = None
        self._shown: RunFigures | None = None
        self._last: RunFigures | None = None

    def show(self, figures: RunFigures) -> None:
        self._last = figures
        if self._is_due(figures):
            self._write(figures)

    def _is_due(self, figures: RunFigures) -> bool:
        if self._shown is None or self._first_at is None:
            return True
        if _states(figures) != _states(self._shown):
            return True
        passed_s = (figures.at - self._shown.at).total_seconds()
        if _kinds(figures) != _kinds(self._shown):
            return passed_s >= LINE_EVERY_S  # a condition may come and go many times
        since_first_s = (self._shown.at - self._first_at).total_seconds()
        pace_s = next((pace for until, pace in _PACES if since_first_s < until), _LAST_PACE_S)
        return passed_s >= pace_s

    def _write(self, figures: RunFigures) -> None:
        if self._is_lost:
            return
        self._first_at, self._shown = self._first_at or figures.at, figures
        try:
            self._stream.write("\n".join(summary(figures)) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._is_lost = True

    def close(self) -> None:
        """Write how it stood at the end, if that is not out yet."""
        if self._last is not None and self._last is not self._shown:
            self._write(self._last)
            self._last = None


def _states(figures: RunFigures) -> list[object]:
    rows = [(each.state, each.is_over, each.sealed_at is None) for each in figures.partitions]
    return [figures.state, figures.is_served, *rows]


def _kinds(figures: RunFigures) -> list[ConditionKind]:
    return [one.kind for one in figures.conditions]


def drawing(figures: RunFigures, width: int) -> Group:
    """Return headline, concerns and table for a terminal of that width; columns give way."""
    table = Table(box=None, pad_edge=False, expand=False)
    table.add_column("partition", no_wrap=True, overflow="ellipsis")
    table.add_column("done", justify="right", no_wrap=True)
    if width >= _MIDDLE:
        table.add_column("samples", justify="right", no_wrap=True)
    if width >= _WIDE:
        table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("now", justify="right", no_wrap=True)
    table.add_column("time left", no_wrap=True, overflow="ellipsis")
    if width >= _WIDE:
        table.add_column("in flight", justify="right", no_wrap=True)
    if width >= _MIDDLE:
        table.add_column("failed", justify="right", no_wrap=True)
        table.add_column("state")  # the only one that rich may narrow: figures are never cut
    for each in figures.partitions:
        cells = _cells(figures, each, width)
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells))
    notes = [Text(one, style="bold yellow") for one in further(figures)]
    return Group(Text(headline(figures), style="bold"), *notes, table)


def _cells(run: RunFigures, figures: PartitionFigures, width: int) -> list[str]:
    speed = figures.speed_tokens_per_s
    cells = [figures.name, f"{figures.percent} %"]
    if width >= _MIDDLE:
        cells.append(samples_text(figures))
    if width >= _WIDE:
        cells.append(words.tokens(figures.tokens.used))
    cells += ["" if speed is None else words.speed(speed), time_left_text(run, figures)]
    if width >= _WIDE:
        cells.append(f"{figures.n_in_flight:,}")
    if width >= _MIDDLE:
        cells += [f"{figures.counts.failed:,}", state_text(run, figures)]
    return cells
