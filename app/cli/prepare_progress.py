"""How far the sources of a preparation are, in a terminal: a table in place, or lines in a file.

Owns layout and how often something is shown. Invariant: an output that is lost never matters to
the work: from then on nothing is shown.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.clock import Clock
from app.core import format as words
from app.sources.parallel import State, Step

LINE_EVERY_S = 10.0


class Progress:
    """Show steps on a stream; `close` leaves the terminal as it is to be found."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream, self._clock = stream, clock
        self._shown_at_s: float | None = None
        console = Console(file=stream)
        self._live: Live | None = None
        with suppress(OSError, ValueError):
            if stream.isatty() and not console.is_dumb_terminal:
                self._live = Live(
                    console=console, auto_refresh=False, transient=True,
                    redirect_stdout=False, redirect_stderr=False,
                )  # fmt: skip

    def show(self, steps: Sequence[Step]) -> None:
        with suppress(OSError, ValueError):
            if self._live is None:
                self._write_line(steps)
            else:
                self._live.start()
                self._live.update(drawing(steps), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            with suppress(OSError, ValueError):
                self._live.stop()

    def _write_line(self, steps: Sequence[Step]) -> None:
        """Write a line now and then; the first one only after a while: small work needs none."""
        now_s = self._clock.monotonic()
        if self._shown_at_s is None:
            self._shown_at_s = now_s
        if now_s - self._shown_at_s >= LINE_EVERY_S:
            self._shown_at_s = now_s
            self._stream.write(f"{summary(steps)}\n")
            self._stream.flush()


def drawing(steps: Sequence[Step]) -> Table:
    table = Table(box=None, pad_edge=False, expand=False)
    table.add_column("partition", no_wrap=True, overflow="ellipsis")
    table.add_column("read", justify="right", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for step in steps:
        cells = (step.name, percent(step), f"{step.n_rows:,}", step.state.value)
        table.add_row(*map(Text, cells))
    return table


def summary(steps: Sequence[Step]) -> str:
    """Return one line for those that work, and how many wait and have ended."""
    working = [f"{one.name} {percent(one)}".strip() for one in steps if one.state is State.WORKING]
    n_rows = sum(step.n_rows for step in steps)
    n_ended = sum(step.state in {State.READY, State.FAILED} for step in steps)
    said = f"{words.plural(n_rows, 'row')} read; {n_ended} of {len(steps)} sources ended"
    return f"{said}; {', '.join(working)}" if working else said


def percent(step: Step) -> str:
    """Return how much of the files' bytes is read, nothing where their size is not known.

    >>> percent(Step("a", 200, done_bytes=199)), percent(Step("hub", 0, n_rows=7))
    ('99 %', '')
    """
    if step.state is State.READY:
        return "100 %"
    return f"{100 * min(step.done_bytes, step.n_bytes) // step.n_bytes} %" if step.n_bytes else ""
