"""`forecast`: what a run's training data takes on the disk, beside what is free.

Owns the flags and the table. Reads the ledger only; works beside a living service, and with
`--tokens` without any run.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from app.api.forecasting import EAGLE3_HIDDEN_SIZE, forecast_to_json, stored_as
from app.cli.options import EXIT_OK, HomeOption, JsonOption, RunOption, epilog
from app.cli.remote import open_ledger
from app.cli.voice import say
from app.controls import find_run
from app.core import format as words
from app.core.spec import parse_tokens
from app.core.training_bytes import DISK_SHARE, Form, HiddenStates, merged_bytes
from app.errors import InputError
from app.files.model_config import hidden_size_in
from app.files.space import free_bytes
from app.settings import PREFIX, load_settings
from app.sizing import PartSize, longest_that_fits, sizes, tokens_band, total_tokens

_SPACE_TIMEOUT_S = 5.0


def add_commands(application: typer.Typer) -> None:
    application.command(epilog=epilog("longwatch forecast night --max-length 4096"))(forecast)


def forecast(  # noqa: PLR0913, PLR0917 - one parameter for each flag
    run: RunOption = None,
    tokens: Annotated[
        str | None,
        typer.Option(envvar=f"{PREFIX}TOKENS", help="Of so many tokens instead of a run: 251M."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(envvar=f"{PREFIX}CONFIG", help="The model's config.json: its hidden size."),
    ] = None,
    hidden_size: Annotated[
        int | None,
        typer.Option(
            envvar=f"{PREFIX}HIDDEN_SIZE",
            min=1,
            help="Numbers of a hidden state.",
            show_default=str(EAGLE3_HIDDEN_SIZE),
        ),
    ] = None,
    layers: Annotated[
        int, typer.Option(envvar=f"{PREFIX}LAYERS", min=1, help="Layers captured, the last too.")
    ] = 4,
    dtype: Annotated[
        str, typer.Option(envvar=f"{PREFIX}DTYPE", help="bf16, fp8 or fp32.")
    ] = "bf16",
    max_length: Annotated[
        int | None,
        typer.Option(
            envvar=f"{PREFIX}MAX_LENGTH", min=1, help="Where training cuts a sample, in tokens."
        ),
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option(
            envvar=f"{PREFIX}SPACE",
            help="Folder on the disk that is to hold it.",
            show_default="the run's output folder",
        ),
    ] = None,
    as_json: JsonOption = False,  # noqa: FBT002 - a flag of the command line
    home: HomeOption = None,
) -> int:
    """Show what merged data and hidden states of a run take, beside the free space."""
    states = HiddenStates(
        hidden_size=_hidden_size(config, hidden_size),
        n_aux_layers=layers - 1,
        stored=stored_as(dtype, "--dtype"),
    )
    folder, parts = space, list[PartSize]()
    if tokens is None:
        ledger = open_ledger(load_settings(home=home).home)
        try:
            found = find_run(ledger, run)
            parts = sizes(ledger, found.id)
        finally:
            ledger.close()
        folder = space or Path(found.output_dir)
        n_tokens = total_tokens(parts, max_length)
    else:
        n_tokens = _typed(tokens)
    free = None if folder is None else free_bytes(folder, _SPACE_TIMEOUT_S)
    if as_json:
        say(json.dumps(forecast_to_json(parts, n_tokens, states, max_length, free)))
    else:
        for line in _lines(parts, n_tokens, states, max_length, free):
            say(line)
    return EXIT_OK


def _hidden_size(config: Path | None, given: int | None) -> int:
    if given is not None or config is None:
        return given or EAGLE3_HIDDEN_SIZE
    try:
        found = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{config} is no model config: {error}", hint="name its config.json, or --hidden-size"
        ) from error
    size = hidden_size_in(found)
    if size is not None:
        return size
    raise InputError(f"{config} tells no hidden_size", hint="say it with --hidden-size")


def _typed(tokens: str) -> int:
    try:
        return parse_tokens(tokens)
    except ValueError as error:
        raise InputError(f"--tokens: {error}") from error


def _lines(
    parts: Sequence[PartSize],
    n_tokens: int,
    states: HiddenStates,
    max_length: int | None,
    free: int | None,
) -> Iterator[str]:
    width = max((len(each.name) for each in parts), default=0)
    for each in parts:
        counted = each.n_tokens(max_length)
        said = f"  {each.name:<{width}}  {each.n_samples:>9,} samples"
        if counted is None:
            yield f"{said}  no answer has been measured yet"
        else:
            mean = counted / each.n_samples if each.n_samples else 0.0
            yield (
                f"{said} x {mean:>8,.0f} tokens = {words.tokens(counted):>6}"
                f"  {words.size(states.bytes_of(counted)):>9} of hidden states"
                f"  (lengths of {each.n_measured:,} answers)"
            )
    band = tokens_band(parts, max_length)
    between = (
        f", {words.tokens(band[0])} to {words.tokens(band[1])} in 8 of 10 cases" if band else ""
    )
    least = "at least " if any(not each.n_measured for each in parts) else ""
    cut = f", each sample cut at {max_length:,}" if max_length else ""
    yield f"{least}{words.tokens(n_tokens)} tokens, prompts included{cut}{between}"
    yield (
        f"  merged         {words.size(merged_bytes(n_tokens))} JSONL,"
        f" {words.size(merged_bytes(n_tokens, Form.PARQUET))} Parquet,"
        f" {words.size(merged_bytes(n_tokens, Form.ARROW))} Arrow"
    )
    needed = states.bytes_of(n_tokens)
    yield f"  hidden states  {words.size(needed)}, {states.bytes_per_token:,} bytes a token"
    yield from _beside_free(parts, needed, states, free)


def _beside_free(
    parts: Sequence[PartSize], needed: int, states: HiddenStates, free: int | None
) -> Iterator[str]:
    if free is None:
        return
    usable = int(free * DISK_SHARE)
    holds = words.tokens(states.tokens_within(usable))
    verdict = "they fit" if needed <= usable else "they do not fit"
    yield (
        f"  free           {words.size(free)}, of which {DISK_SHARE:.0%} hold"
        f" {holds} tokens of hidden states: {verdict}"
    )
    longest = longest_that_fits(parts, states, usable)
    if needed > usable and longest is not None:
        yield f"  they would fit with --max-length {longest}"
