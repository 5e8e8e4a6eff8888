"""`merge`: the answers of runs, and those that datasets had already, as training data.

Owns the flags and what is told. The work is `app.export`; nothing of a run is changed.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.merge_told import MergeProgress, told_lines
from app.cli.options import EXIT_OK, HomeOption, epilog
from app.cli.remote import open_ledger
from app.cli.voice import complain, say
from app.clock import SystemClock
from app.controls import find_run
from app.core.reasoning import ReasoningMarks
from app.core.spec import parse_tokens
from app.errors import InputError
from app.export.choosing import Choice, Finish
from app.export.encoding import CallsForm, Encoder, Writing
from app.export.existing import find_existing
from app.export.merging import MergeOrder, merge
from app.export.parquet import arrow
from app.export.planning import ExistingPart, Plan, plan, run_parts
from app.settings import PREFIX, load_settings

_KEPT_IF_ASKED = frozenset({"suspect", "empty"})


def add_commands(application: typer.Typer) -> None:
    application.command(
        "merge", epilog=epilog("longwatch merge night --out merged --existing prepared")
    )(merge_runs)


def _option(name: str, help_: str, **more: Any) -> Any:
    """Return a flag with its twin in the environment."""
    variable = f"{PREFIX}MERGE_{name.removeprefix('--').replace('-', '_').upper()}"
    return typer.Option(name, envvar=variable, help=help_, **more)


def merge_runs(  # noqa: PLR0913, PLR0917 - one parameter for each flag
    wanted: Annotated[list[str], typer.Argument(metavar="RUN…", help="Numbers or names of runs.")],
    out: Annotated[Path, _option("--out", "Folder of the merged data.")] = Path("merged"),
    existing: Annotated[
        Path | None,
        _option("--existing", "Output folder of longwatch prepare, whose answers are merged too."),
    ] = None,
    server: Annotated[
        str | None,
        _option("--server-url", "Server whose tokenizer encodes existing answers."),
    ] = None,
    finish: Annotated[
        str, _option("--finish", "Which ends are kept, with commas: stop, length, tool.")
    ] = "stop,length,tool",
    with_status: Annotated[
        str, _option("--with", "Keep answers also that are suspect, empty.", show_default=False)
    ] = "",
    drop_flags: Annotated[
        str, _option("--drop-flags", "Leave out answers with these flags.", show_default=False)
    ] = "",
    max_length: Annotated[
        int | None,
        _option("--max-length", "Leave out records of more tokens, prompt included.", min=1),
    ] = None,
    min_output: Annotated[
        int, _option("--min-output", "Leave out answers of fewer tokens.", min=1)
    ] = 1,
    shard_tokens: Annotated[
        str, _option("--shard-tokens", "Tokens after which the next file begins: 50M.")
    ] = "100M",
    parquet: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, _option("--parquet", "Write Parquet beside it (extra parquet).")
    ] = False,
    conversations: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, _option("--conversations", "Write conversations beside it; their ids are not exact.")
    ] = False,
    text: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, _option("--text", "Write the answers' texts too, to read them.")
    ] = False,
    think_ids: Annotated[
        str | None,
        _option(
            "--think-ids",
            "Ids that open and close reasoning: 163606,163607.",
            show_default="those of the spec",
        ),
    ] = None,
    end_text: Annotated[
        str, _option("--end-text", "What ends a turn, in existing answers.")
    ] = "<|im_end|>",
    tool_calls: Annotated[
        CallsForm | None,
        _option("--tool-calls", "How the model writes calls, in existing answers."),
    ] = None,
    overwrite: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, _option("--overwrite", "Replace another merge in that folder.")
    ] = False,
    home: HomeOption = None,
) -> int:
    """Merge answers into training data for SpecForge and speculators."""
    settings = load_settings(home=home)
    choice = Choice(
        finish=frozenset(Finish(each) for each in _listed("--finish", finish, set(Finish))),
        with_status=frozenset(_listed("--with", with_status, set(_KEPT_IF_ASKED))),
        without_flags=frozenset(_listed("--drop-flags", drop_flags, None)),
        max_length=max_length,
        min_output=min_output,
    )
    writing = Writing(end=end_text, calls=tool_calls)
    if parquet:
        arrow()
    with ExitStack() as stack:
        ledger = open_ledger(settings.home)
        stack.callback(ledger.close)
        chosen = [find_run(ledger, each) for each in dict.fromkeys(wanted)]
        of_runs = [
            part
            for run in chosen
            for part in run_parts(
                ledger,
                settings.home,
                run,
                choice,
                _marks(think_ids),
                with_messages=conversations,
            )
        ]
        of_datasets: list[ExistingPart] = []
        if existing is not None:
            found = find_existing(existing, writes_calls=tool_calls is not None)
            key = settings.api_key.get_secret_value() if settings.api_key else None
            encoder = stack.enter_context(Encoder(_server(server), writing, key))
            of_datasets = [
                ExistingPart(existing=each, encoder=encoder, choice=choice) for each in found
            ]
        how = {
            "finish": sorted(choice.finish),
            "with": sorted(choice.with_status),
            "drop_flags": sorted(choice.without_flags),
            "max_length": max_length,
            "min_output": min_output,
            "shard_tokens": _tokens(shard_tokens),
            "parquet": parquet,
            "conversations": conversations,
            "text": text,
            "think_ids": think_ids,
        }
        planned = plan(chosen, of_runs, of_datasets, how, writing)
        for name in planned.facts["unfinished_runs"]:
            complain(f'run "{name}" has not ended: what it has so far is merged')
        order = MergeOrder(
            folder=out,
            parts=planned.parts,
            identity=planned.identity,
            facts=planned.facts,
            shard_tokens=_tokens(shard_tokens),
            with_parquet=parquet,
            with_conversations=conversations,
            with_text=text,
            may_overwrite=overwrite,
        )
        _carry_out(order, planned, say)
    return EXIT_OK


def _carry_out(order: MergeOrder, planned: Plan, speak: Callable[[str], None]) -> None:
    progress = MergeProgress(sys.stderr, SystemClock(), planned.n_samples)
    try:
        done = merge(order, progress.show)
    except KeyboardInterrupt:
        complain("stopped; the same command goes on behind the last whole file")
        raise
    finally:
        progress.close()
    for line in told_lines(order.folder, done):
        speak(line)


def _listed(flag: str, given: str, known: set[Finish] | set[str] | None) -> Iterator[str]:
    for word in filter(None, (each.strip() for each in given.split(","))):
        if known is not None and word not in known:
            raise InputError(
                f'{flag}: "{word}" is not known', hint=f"take {', '.join(sorted(known))}"
            )
        yield word


def _tokens(given: str) -> int:
    try:
        return parse_tokens(given)
    except ValueError as error:
        raise InputError(f"--shard-tokens: {error}") from error


def _marks(given: str | None) -> ReasoningMarks | None:
    if given is None:
        return None
    opening, _, closing = given.partition(",")
    if not (opening.strip().isdecimal() and closing.strip().isdecimal()):
        raise InputError(
            f'--think-ids "{given}" is not two token ids', hint="write them as 163606,163607"
        )
    return ReasoningMarks(opening=frozenset({int(opening)}), closing=frozenset({int(closing)}))


def _server(given: str | None) -> str:
    if given is None:
        raise InputError(
            "--existing needs a server whose tokenizer encodes the answers",
            hint="name it with --server-url",
        )
    return given
