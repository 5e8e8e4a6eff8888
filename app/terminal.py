"""The progress of a run in a terminal: a table that stays in place, or plain lines in a file.

Owns layout and how often something is shown; figures and their words come from elsewhere.
Invariant: an output that is lost (closed terminal, broken pipe) is noticed once and never matters
to the run: from then on nothing is shown.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.core import format as words
from app.core.estimate import Unknown
from app.core.states import PartitionState, RunState
from app.figures import PartitionFigures, RunFigures

LINE_EVERY_S = 10.0
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
    """Writes the headline and one line per partition each ten seconds, and at every change."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_lost = False
        self._shown_at: datetime | None = None
        self._shown_state: tuple[object, ...] = ()

    def show(self, figures: RunFigures) -> None:
        state = (figures.state, *(each.state for each in figures.partitions))
        is_due = self._shown_at is None or figures.at - self._shown_at >= timedelta(
            seconds=LINE_EVERY_S
        )
        if self._is_lost or not (is_due or state != self._shown_state):
            return
        self._shown_at, self._shown_state = figures.at, state
        try:
            self._stream.write("\n".join(summary(figures)) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._is_lost = True

    def close(self) -> None:
        """Do nothing: every line is out."""


def summary(figures: RunFigures) -> list[str]:
    """Return the run as plain lines: the headline, what needs a person, each partition."""
    local = figures.at.astimezone()
    width = max((len(each.name) for each in figures.partitions), default=0)
    lines = [f"{local:%H:%M:%S} {headline(figures)}"]
    lines += [f"  {one}" for one in concerns(figures)]
    return lines + [f"  {_line(each, width)}" for each in figures.partitions]


def headline(figures: RunFigures) -> str:
    """Return the sentence that answers how fast, how long, and whether somebody is needed."""
    local = figures.at.astimezone()
    parts = [f"{words.one_line(figures.name)}: {figures.state}, {figures.percent} %"]
    if figures.speed_tokens_per_s is not None:
        parts.append(words.speed(figures.speed_tokens_per_s))
    end = words.done_at(figures.time_left, local)
    if figures.state is RunState.RUNNING and isinstance(figures.time_left, Unknown):
        parts.append(f"end: {figures.time_left.why}")
    elif figures.state is RunState.RUNNING and end:
        parts.append(f"done at {end} in {words.time_left(figures.time_left)}")
    needs = concerns(figures)
    parts.append("nothing needs you" if not needs else "needs you, see below")
    return "; ".join(parts)


def concerns(figures: RunFigures) -> list[str]:
    """Return sentences about what a person should look at, the gravest first."""
    found = [figures.reason] if figures.reason else []
    found += [condition.sentence for condition in figures.conditions]
    found += [
        f"{each.name} is paused: {each.reason}"
        for each in figures.partitions
        if each.state is PartitionState.PAUSED and each.reason not in ("", "drained")
    ]
    failed = [each for each in figures.partitions if each.counts.failed]
    if failed:
        n = sum(each.counts.failed for each in failed)
        names = ", ".join(each.name for each in failed)
        found.append(f"{words.plural(n, 'sample')} failed in {names}.")
    return [words.one_line(one) for one in found]


def _line(figures: PartitionFigures, width: int) -> str:
    cells = [
        f"{figures.name:<{width}} {figures.percent:>3} %",
        f"{_samples(figures)} samples",
        f"{words.tokens(figures.tokens.used)} tokens",
    ]
    if figures.speed_tokens_per_s is not None:
        cells.append(words.speed(figures.speed_tokens_per_s))
    cells.append(_left(figures))
    if figures.n_in_flight:
        cells.append(f"{figures.n_in_flight:,} in flight")
    if figures.counts.failed:
        cells.append(f"{figures.counts.failed:,} failed")
    return ", ".join([*cells, _state(figures)])


def _samples(figures: PartitionFigures) -> str:
    total = figures.counts.total
    wanted = total if figures.goal_samples is None else min(total, figures.goal_samples)
    return f"{figures.counts.kept:,}/{wanted:,}"


def _left(figures: PartitionFigures) -> str:
    left = words.time_left(figures.time_left)
    return left if isinstance(figures.time_left, Unknown) or figures.is_over else f"{left} left"


def _state(figures: PartitionFigures) -> str:
    state = "finished" if figures.is_over and figures.sealed_at else str(figures.state)
    return words.one_line("; ".join([state, *figures.remarks]))


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
        table.add_column("state", overflow="ellipsis", no_wrap=True)
    for each in figures.partitions:
        table.add_row(*(Text(cell) for cell in _cells(each, width)))
    notes = [Text(one, style="bold yellow") for one in concerns(figures)]
    return Group(Text(headline(figures), style="bold"), *notes, table)


def _cells(figures: PartitionFigures, width: int) -> list[str]:
    speed = figures.speed_tokens_per_s
    cells = [figures.name, f"{figures.percent} %"]
    if width >= _MIDDLE:
        cells.append(_samples(figures))
    if width >= _WIDE:
        cells.append(words.tokens(figures.tokens.used))
    cells += ["" if speed is None else words.speed(speed), words.time_left(figures.time_left)]
    if width >= _WIDE:
        cells.append(f"{figures.n_in_flight:,}")
    if width >= _MIDDLE:
        cells += [f"{figures.counts.failed:,}", _state(figures)]
    return cells
