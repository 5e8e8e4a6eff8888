"""`prepare`: datasets to prompts, one partition for each source of a spec.

Owns what is told of it. The work is `app.sources`; nothing of a run is read or changed.
"""

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.options import EXIT_ERROR, EXIT_OK, EXIT_STOPPED, epilog
from app.cli.prepare_progress import Progress
from app.cli.voice import complain, say
from app.clock import SystemClock
from app.core import format as words
from app.errors import InputError
from app.settings import PREFIX
from app.sources.finding import find_sources
from app.sources.known import all_recipes
from app.sources.looking import Look, look
from app.sources.partitions import Outcome, prepare_all
from app.sources.publishing import Published
from app.sources.rows import LOOK_ROWS
from app.sources.spec import PrepareSpec, load_prepare_spec

_CODES = (
    "Exit codes: 0 every source is prepared, 1 one is not (bad usage included), 3 stopped;"
    " then no partition of a source that had not ended is changed."
)
_HEADS = (
    "partition",
    "rows in",
    "kept",
    "skipped",
    "characters p50",
    "p95",
    "max",
    "recipe",
    "records",
)
_LOOK_HEADS = ("partition", "files", "recipe", "mode", "kept", "skipped because")
_TEXTS = frozenset({"partition", "recipe", "records", "mode", "skipped because"})
_PUBLISHED = {
    Published.WRITTEN: "written",
    Published.UNCHANGED: "as they were",
    Published.REPLACED: "replaced",
}


def add_commands(application: typer.Typer) -> None:
    """Register the command of this module."""
    application.command(epilog=epilog("longwatch prepare sources.toml", _CODES))(prepare)


def prepare(
    spec_path: Annotated[
        Path | None, typer.Argument(metavar="[SPEC.toml]", help="The spec of the sources.")
    ] = None,
    only_check: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option(
            "--check",
            envvar=f"{PREFIX}PREPARE_CHECK",
            help="Only look at the first 100 rows of each source; write nothing.",
        ),
    ] = False,
    overwrite: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option(
            "--overwrite",
            envvar=f"{PREFIX}PREPARE_OVERWRITE",
            help="Replace prompts that are there and differ.",
        ),
    ] = False,
    list_recipes: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option(
            "--recipes",
            envvar=f"{PREFIX}PREPARE_RECIPES",
            help="List the recipes with the columns by which they are recognised.",
        ),
    ] = False,
) -> int:
    """Turn datasets into the prompts of partitions; every row that is skipped has its reason."""
    if list_recipes:
        _tell_recipes()
        return EXIT_OK
    if spec_path is None:
        raise InputError(
            "no spec is given", hint="write longwatch prepare SPEC.toml, or --recipes for a list"
        )
    spec = load_prepare_spec(spec_path)
    files = find_sources(spec, spec_path)
    if only_check:
        looks = [look(spec, source, files[source.name]) for source in spec.sources]
        return _tell_looks(looks, spec_path)
    progress = Progress(sys.stderr, SystemClock())
    try:
        with _ended_by_sigterm():
            outcomes = prepare_all(spec, files, progress.show, overwrite=overwrite)
    except KeyboardInterrupt:
        complain("Stopped; the partitions of sources that had not ended are as they were.")
        return EXIT_STOPPED
    finally:
        progress.close()
    return _tell(outcomes, spec)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM be what Ctrl-C is: processes end, drafts go."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(outcomes: list[Outcome], spec: PrepareSpec) -> int:
    good = [one for one in outcomes if one.report is not None]
    for one in good:
        for line in _block(one, spec.output_dir):
            say(line)
        say("")
    if good:
        for line in _table([_HEADS, *map(_row, good)]):
            say(line)
    failed = [one for one in outcomes if one.error is not None]
    for one in failed:
        complain(f"error: source {one.name}: {one.error}")
    if failed:
        n = f"{len(failed)} of {len(outcomes)} sources"
        if spec.deduplicate_across and good:
            complain(f"{n} are not prepared; the others were not compared with them.")
        else:
            complain(f"{n} are not prepared.")
    return EXIT_ERROR if failed else EXIT_OK


def _block(one: Outcome, output_dir: Path) -> list[str]:
    report: Mapping[str, Any] = one.report or {}
    how = "recognised" if report["recipe_was_recognised"] else "named"
    rows = words.plural(report["rows_in"], "row")
    lines = [
        f"{one.name}: {rows}, {report['kept']:,} kept, {output_dir / one.name / report['records']}",
        f"  recipe {report['recipe']} ({how}), mode {report['mode']}",
    ]
    others = report["rows_by_other_recipes"]
    if others:
        lines.append(f"  rows of another shape: {_counts(others)}")
    if report["skipped"]:
        lines.append(f"  skipped: {_counts(report['skipped'])}")
    if report["flags"]:
        lines.append(f"  kept with: {_counts(report['flags'])}")
    lines += [f"  read: {_read(source)}" for source in report["sources"]]
    lines += [f"  {words.one_line(each['id'])}: {each['text']}" for each in report["examples"]]
    return lines


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in counts.items())


def _read(source: Mapping[str, Any]) -> str:
    if "hub" in source:
        return str(source["hub"])
    return f"{source['file']}, {words.size(source['bytes'])}, changed {source['changed_at']}"


def _row(one: Outcome) -> tuple[str, ...]:
    report: Mapping[str, Any] = one.report or {}
    lengths = report["characters"]
    return (
        one.name,
        f"{report['rows_in']:,}",
        f"{report['kept']:,}",
        f"{report['rows_in'] - report['kept']:,}",
        *(f"{lengths[name]:,}" for name in ("p50", "p95", "max")),
        report["recipe"],
        "" if one.published is None else _PUBLISHED[one.published],
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    heads = rows[0]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if head in _TEXTS else cell.rjust(width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _tell_recipes() -> None:
    for recipe in all_recipes().values():
        say(f"{recipe.name} ({recipe.gives}, {recipe.mode}): {recipe.about}")
        say(f"  columns: {', '.join(sorted(recipe.columns))}")
    say('Any other table: columns = { prompt = "question" } in its [source.<name>].')


def _tell_looks(looks: list[Look], spec_path: Path) -> int:
    problems = [f"source {one.name}: {one.problem}" for one in looks if one.problem]
    for said in problems:
        say(f"error: {said}")
    for said in (f"source {one.name}: {one.notice}" for one in looks if one.notice):
        say(f"notice: {said}")
    for line in _table([_LOOK_HEADS, *map(_look_row, looks)]):
        say(line)
    if problems:
        say(f"{spec_path} cannot be prepared: {words.plural(len(problems), 'error')}.")
        return EXIT_ERROR
    say(f"{spec_path} can be prepared, as far as the first {LOOK_ROWS} rows of each source show.")
    return EXIT_OK


def _look_row(one: Look) -> tuple[str, ...]:
    return (
        one.name,
        f"{one.n_files:,}" if one.n_files else "hub",
        f"{one.recipe} (recognised)" if one.is_recognised else one.recipe,
        one.mode,
        f"{one.tally.n_kept:,} of {one.tally.n_rows:,}",
        _counts(one.tally.in_order()),
    )
