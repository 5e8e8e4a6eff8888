"""`check`: everything that a start would refuse, and what it would do, without doing any of it.

Owns what is looked at and how it is told. Invariant: writes nothing and waits for no server.
"""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.options import EXIT_ERROR, EXIT_OK, HomeOption, JsonOption, epilog
from app.cli.voice import complain, say
from app.clock import SystemClock
from app.core import format as words
from app.core.spec import RunSpec
from app.files.spec_files import load_spec
from app.preflight import Report, preflight
from app.settings import load_settings
from app.submission import Planned, plan, refusals

SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC.toml", help="The spec of a run.")]
_HEADS = (
    "partition", "prompts", "rejected", "class", "concurrency", "max_new_tokens", "budget", "goal",
    "deadline",
)  # fmt: skip


def add_commands(application: typer.Typer) -> None:
    """Register the command of this module."""
    application.command(
        epilog=epilog("longwatch check night.toml", "Exit codes: 0 it would start, 1 it would not.")
    )(check)


def check(
    spec_path: SpecArgument,
    as_json: JsonOption = False,  # noqa: FBT002 - a flag of the command line
    home: HomeOption = None,
) -> int:
    """Tell everything that a start would refuse, at once; starts nothing."""
    settings = load_settings(home=home)
    spec = load_spec(spec_path)
    clock = SystemClock()
    at_once = replace(spec, startup_wait_s=0.0)
    report = asyncio.run(preflight(at_once, settings, clock, complain))
    refused = refusals(settings.home, spec, report, clock.now())
    errors = list(dict.fromkeys([*report.errors, *refused]))
    planned = [] if errors else plan(spec, report, complain, errors)
    report = replace(report, errors=tuple(errors))
    if as_json:
        say(json.dumps(_as_json(spec, report, planned)))
    else:
        _tell(report, spec, planned, spec_path)
    return EXIT_ERROR if errors else EXIT_OK


def _fields(each: Planned, spec: RunSpec) -> dict[str, Any]:
    own = each.limits.concurrency
    return {
        "name": each.name,
        "n_prompts": each.n_prompts,
        "n_rejected": each.scan.n_rejected,
        "class_name": each.limits.class_name,
        "concurrency": own or spec.classes[each.limits.class_name].concurrency,
        "is_own_concurrency": own is not None,
        "max_new_tokens": each.max_new_tokens,
        "token_budget": each.limits.token_budget_tokens,
        "goal_samples": each.limits.max_samples,
        "deadline": each.limits.deadline,
    }


def _as_json(spec: RunSpec, report: Report, planned: list[Planned]) -> dict[str, Any]:
    return {
        "ok": not report.errors,
        "name": spec.name,
        "errors": list(report.errors),
        "warnings": list(report.warnings),
        "notices": list(report.notices),
        "partitions": [_fields(each, spec) for each in planned],
        "samples_per_prompt": spec.samples_per_prompt,
        "token_budget": spec.token_budget_tokens,
        "deadline": spec.deadline,
        "totals": {
            "partitions": len(planned),
            "prompts": sum(each.n_prompts for each in planned),
            "rejected": sum(each.scan.n_rejected for each in planned),
        },
    }


def _tell(report: Report, spec: RunSpec, planned: list[Planned], spec_path: Path) -> None:
    for kind, lines in (
        ("error", report.errors),
        ("warning", report.warnings),
        ("notice", report.notices),
    ):
        for line in lines:
            say(f"{kind}: {line}")
    if report.errors:
        say(f"{spec_path} would not start: {words.plural(len(report.errors), 'error')}.")
        return
    for row in _table(planned, spec):
        say(row)
    say(_totals(spec, planned))
    say(f"{spec_path} would start.")


def _table(planned: list[Planned], spec: RunSpec) -> list[str]:
    rows = [_HEADS, *(_row(each, spec) for each in planned)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    texts = {_HEADS.index("partition"), _HEADS.index("class")}  # numbers stand to the right
    return [
        "  ".join(
            cell.ljust(width) if column in texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _row(each: Planned, spec: RunSpec) -> tuple[str, ...]:
    limits, shared = each.limits, spec.classes[each.limits.class_name].concurrency
    return (
        each.name,
        f"{each.n_prompts:,}",
        f"{each.scan.n_rejected:,}",
        limits.class_name,
        f"{limits.concurrency:,}" if limits.concurrency else f"{shared:,} shared",
        f"{each.max_new_tokens:,}",
        "none" if limits.token_budget_tokens is None else f"{limits.token_budget_tokens:,}",
        "all" if limits.max_samples is None else f"{limits.max_samples:,}",
        limits.deadline or "none",
    )


def _totals(spec: RunSpec, planned: list[Planned]) -> str:
    n_prompts = sum(each.n_prompts for each in planned)
    n_rejected = sum(each.scan.n_rejected for each in planned)
    said = f"{words.plural(len(planned), 'partition')}, {words.plural(n_prompts, 'prompt')}"
    said += f" ({n_rejected:,} rejected)"
    if spec.samples_per_prompt > 1:
        said += f", {spec.samples_per_prompt:,} answers to each"
    if spec.token_budget_tokens is not None:
        said += f"; budget of the run {spec.token_budget_tokens:,} tokens"
    if spec.deadline is not None:
        said += f"; deadline of the run {spec.deadline}"
    return f"{said}."
