"""`report`: how a run went, and how wrong each end that was shown turned out to be.

Owns the layout in the terminal. Reads the ledger only; works beside a living service.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from app.api.report_form import report_to_json
from app.cli.options import EXIT_OK, HomeOption, JsonOption, RunOption, epilog
from app.cli.remote import open_ledger
from app.cli.voice import say
from app.controls import find_run
from app.core import format as words
from app.core.eta_drawing import Panel, svg, terminal
from app.core.eta_errors import MARKS, Verdict
from app.core.states import RunState
from app.core.types import Counts, Tokens
from app.figures.shapes import total_counts, total_tokens
from app.files.space import storage_error
from app.recorder.course import Held
from app.recorder.hindsight import RunPast, look_back
from app.settings import PREFIX, load_settings

_MISSING = "–"


def add_commands(application: typer.Typer) -> None:
    application.command(epilog=epilog("longwatch report night --svg night.svg"))(report)


def report(
    run: RunOption = None,
    svg_path: Annotated[
        Path | None,
        typer.Option("--svg", envvar=f"{PREFIX}SVG", help="Draw it into this file as well."),
    ] = None,
    as_json: JsonOption = False,  # noqa: FBT002 - a flag of the command line
    home: HomeOption = None,
) -> int:
    """Show how a run went: times, tokens, conditions, and how wrong the shown ends were."""
    ledger = open_ledger(load_settings(home=home).home)
    try:
        past = look_back(ledger, find_run(ledger, run))
    finally:
        ledger.close()
    if as_json:
        say(json.dumps(report_to_json(past)))
    else:
        for line in lines(past):
            say(line)
    if svg_path is not None:
        _draw(past, svg_path)
        if not as_json:
            say(f"Drawn into {svg_path}")
    return EXIT_OK


def _draw(past: RunPast, path: Path) -> None:
    title = f'Shown ends of run {past.id} "{past.name}"'
    try:
        path.write_text(svg(title, panels(past)), encoding="utf-8")
    except OSError as error:
        then = "draw it again, or name another file with --svg"
        raise storage_error(path, "write", error, then=then) from error


def panels(past: RunPast) -> list[Panel]:
    """Return what can be drawn: the run first, then its partitions."""
    judged = [("the run", past.verdict), *((each.name, each.verdict) for each in past.partitions)]
    return [
        Panel(name=name, said=_said(verdict), curve=verdict.curve)
        for name, verdict in judged
        if verdict is not None
    ]


def _said(verdict: Verdict) -> str:
    held = _percent(verdict.held_ratio)
    said = f"median error {_percent(verdict.median_from_5)} from 5 % on; range held {held}"
    if verdict.n_ends > 1:
        said += f"; drawn: the longest of {verdict.n_ends} stretches"
    return said


def lines(past: RunPast) -> Iterator[str]:
    """Give the report as lines."""
    yield from _head(past)
    yield ""
    yield from _ends(past)
    for panel in panels(past)[:1]:
        yield ""
        yield from terminal(panel)
    yield ""
    yield from _conditions(past)


def _head(past: RunPast) -> Iterator[str]:
    counts = total_counts([each.counts for each in past.partitions])
    tokens = total_tokens([each.tokens for each in past.partitions])
    since = past.ended_at or past.seen_until
    until = "" if past.ended_at else ", seen until"
    because = f" ({words.one_line(past.reason)})" if past.reason else ""
    yield (
        f'run {past.id} "{words.one_line(past.name)}" {past.state}{because}{until}'
        f" {since.astimezone():%F %T %z}"
    )
    times = [f"{words.span(past.active_s)} active", f"{words.span(past.paused_s)} paused"]
    if past.unserved_s >= 1:
        times.append(f"{words.span(past.unserved_s)} without a service")
    if past.finished_s >= 1:
        times.append(f"{words.span(past.finished_s)} finished before it was reopened")
    yield f"  time     {', '.join(times)}; since {past.begin.astimezone():%F %T %z}"
    best = past.best_tokens_per_s
    yield (
        f"  speed    {words.speed(past.mean_tokens_per_s)} mean of the active time,"
        f" {words.speed(best) if best is not None else _MISSING} best five minutes"
    )
    yield f"  tokens   {_tokens(tokens)}"
    yield f"  samples  {_samples(counts)}"


def _tokens(tokens: Tokens) -> str:
    held = f", {words.tokens(tokens.held)} of unfinished answers" if tokens.held else ""
    return f"{words.tokens(tokens.kept)} kept, {words.tokens(tokens.wasted)} wasted{held}"


def _samples(counts: Counts) -> str:
    told = [(name, getattr(counts, name)) for name in Counts.__dataclass_fields__]
    return ", ".join(f"{n:,} {name}" for name, n in told if n) or "none"


def _ends(past: RunPast) -> Iterator[str]:
    yield (
        "Error of the time left that was shown, at so much of the work"
        " (+ too long, − too short, – nothing shown):"
    )
    head = [
        "",
        *(f"{100 * share:.0f} %" for share in MARKS),
        "median 5 %+",
        "25 %+",
        "range held",
        "mean",
    ]
    rows = [head, ["the run", *_cells(past.verdict), words.speed(past.mean_tokens_per_s)]]
    rows += [
        [each.name, *_cells(each.verdict), words.speed(each.mean_tokens_per_s)]
        for each in past.partitions
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield f"  {row[0].ljust(widths[0])}  {'  '.join(cells)}".rstrip()
    if past.ended_at is None:
        yield f"  {_no_end(past)}"
    open_ones = [each.name for each in past.partitions if each.ended_at is None]
    if open_ones and past.state is not RunState.FINISHED:
        yield f"  Not finished: {', '.join(open_ones)}"
    if not past.n_rows:
        yield "  No figures are stored of it."


def _no_end(past: RunPast) -> str:
    if past.opened_at == past.begin:
        return f"The run is {past.state}: it has no end yet to hold anything against."
    return (
        f"The run is {past.state}: since it was reopened at {past.opened_at.astimezone():%F %T} it"
        " has no end; errors are of what was shown before the end it had then."
    )


def _cells(verdict: Verdict | None) -> list[str]:
    if verdict is None:
        return [_MISSING] * (len(MARKS) + 3)
    return [
        *(_signed(mark.error_ratio) for mark in verdict.marks),
        _percent(verdict.median_from_5),
        _percent(verdict.median_from_25),
        _percent(verdict.held_ratio),
    ]


def _signed(ratio: float | None) -> str:
    if ratio is None:
        return _MISSING
    n = round(100 * ratio)
    return f"{'+' if n > 0 else '−' if n < 0 else ''}{abs(n):,} %"


def _percent(ratio: float | None) -> str:
    return _MISSING if ratio is None else f"{100 * ratio:.1f} %"


def _conditions(past: RunPast) -> Iterator[str]:
    if not past.conditions:
        yield "No condition held."
        return
    yield "Conditions:"
    for each in past.conditions:
        yield f"  {_condition(each)}"


def _condition(held: Held) -> str:
    begin = held.begin.astimezone()
    where = f" {held.partition}" if held.partition else ""
    if held.end is None:
        span = "still holds"
    else:
        end = held.end.astimezone()
        until = f"{end:%T}" if end.date() == begin.date() else f"{end:%F %T}"
        span = f"{until}, {words.span_of(held.begin, held.end)}"
    return f"{held.kind}{where}: {begin:%F %T} to {span}: {words.one_line(held.sentence)}"
