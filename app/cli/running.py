"""`run` and `serve`: a spec, or the flags of the job that Longwatch replaces, to a run.

Owns which flags there are and how they become a `RunSpec`; decides nothing else.
"""
# ruff: noqa: ARG001, FBT002, PLR0913, PLR0917 - a command's parameters are its flags; typer takes
# them from the signature, and what belongs to the spec is read from the context by its name.

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.following import run_by_service
from app.cli.foreground import run_foreground
from app.cli.options import (
    EXIT_CODES_RUN,
    HomeOption,
    HostOption,
    NoWebOption,
    OfflineAssetsOption,
    PortOption,
    epilog,
)
from app.cli.remote import living_api
from app.core.spec import RunSpec
from app.core.spec_flags import RunFlags, spec_from_flags
from app.errors import InputError
from app.files.spec_files import load_spec, resolve_paths, spec_errors_as_input
from app.settings import PREFIX, Settings, load_settings

_EXAMPLE = (
    "longwatch run night.toml\n\nExample: longwatch run --partition all --output-dir prepared"
    " --server-url http://localhost:8000 --short-concurrency 150 --token-budget 10M"
)
# flags of the command line that are fields of RunFlags under another name
_RENAMED = {"partition": "partitions", "server_url": "server_urls"}
_SAMPLING = ("temperature", "top_p", "top_k", "min_p")
_SPEC_VALUES = ("samples_per_prompt", "max_attempts", "stop_grace_s")
_NEITHER = frozenset(
    {"spec_path", "home", "host", "port", "no_web", "offline_assets", "accept_changes"}
)


def add_commands(application: typer.Typer) -> None:
    """Register the commands of this module."""
    application.command(epilog=epilog(_EXAMPLE, EXIT_CODES_RUN))(run)
    application.command(epilog=epilog("longwatch serve --home night-home"))(serve)


def _flag(name: str, about: str, **more: Any) -> Any:
    variable = PREFIX + name.removeprefix("--").upper().replace("-", "_")
    return typer.Option(name, envvar=variable, help=about, **more)


def run(
    context: typer.Context,
    spec_path: Annotated[
        Path | None, typer.Argument(metavar="[SPEC.toml]", help="The spec; or else flags.")
    ] = None,
    partition: Annotated[
        list[str] | None, _flag("--partition", '"all", or names; may be repeated.')
    ] = None,
    output_dir: Annotated[str | None, _flag("--output-dir", "Folder for the answers.")] = None,
    server_url: Annotated[
        list[str] | None, _flag("--server-url", "Address of SGLang; may be repeated.")
    ] = None,
    prompts_dir: Annotated[
        str | None, _flag("--prompts-dir", "Folder of the prompts.", show_default="--output-dir")
    ] = None,
    name: Annotated[
        str | None, _flag("--name", "Name of the run.", show_default="name of --output-dir")
    ] = None,
    short: Annotated[
        list[str] | None,
        _flag("--short", "A partition that is short; B1_ B3_ B6_ B7_ are by their names."),
    ] = None,
    short_concurrency: Annotated[
        int | None,
        _flag("--short-concurrency", "Requests of all short ones.", show_default="150"),
    ] = None,
    short_max_tokens: Annotated[
        int | None, _flag("--short-max-tokens", "Longest short answer.", show_default="10240")
    ] = None,
    long_concurrency: Annotated[
        int | None, _flag("--long-concurrency", "Requests of all long ones.", show_default="32")
    ] = None,
    long_max_tokens: Annotated[
        int | None, _flag("--long-max-tokens", "Longest long answer.", show_default="16384")
    ] = None,
    max_samples: Annotated[
        int | None, _flag("--max-samples", "Answers wanted of each partition.")
    ] = None,
    token_budget: Annotated[
        str | None, _flag("--token-budget", "Output tokens of each partition, such as 10M.")
    ] = None,
    deadline: Annotated[
        str | None, _flag("--deadline", 'When to stop, cleanly: "08:00", a date with it, or "+6h".')
    ] = None,
    samples_per_prompt: Annotated[
        int | None,
        _flag(
            "--samples-per-prompt", "Answers to each prompt.", min=1, max=1_000, show_default="1"
        ),
    ] = None,
    temperature: Annotated[float | None, _flag("--temperature", "Sampling temperature.")] = None,
    top_p: Annotated[float | None, _flag("--top-p", "Nucleus sampling.")] = None,
    top_k: Annotated[int | None, _flag("--top-k", "Top-k sampling.")] = None,
    min_p: Annotated[float | None, _flag("--min-p", "Min-p sampling.")] = None,
    chat_template_kwargs: Annotated[
        str | None,
        _flag("--chat-template-kwargs", """JSON for the chat template: '{"thinking": true}'."""),
    ] = None,
    max_attempts: Annotated[
        int | None,
        _flag("--max-attempts", "Tries of a sample.", min=1, max=100, show_default="3"),
    ] = None,
    stop_grace_s: Annotated[
        float | None,
        _flag("--stop-grace-s", "How long a stop lets answers end.", min=0, show_default="0"),
    ] = None,
    accept_changes: Annotated[
        bool, _flag("--accept-changes", "Go on though what the answers depend on has changed.")
    ] = False,
    home: HomeOption = None,
    host: HostOption = None,
    port: PortOption = None,
    no_web: NoWebOption = False,
    offline_assets: OfflineAssetsOption = None,
) -> int:
    """Run prompts to their end, in the foreground or by the service that lives on the home.

    Killed and started again with the same words, it goes on with the same run.
    """
    settings = load_settings(
        home=home, host=host, port=port, no_web=no_web or None, offline_assets=offline_assets
    )
    spec = asked_spec(context, spec_path)
    return run_spec(settings, spec, accept_changes=accept_changes)


def run_spec(settings: Settings, spec: RunSpec, *, accept_changes: bool, stay: bool = False) -> int:
    """Run a spec to its end, here or by the living service; here, `stay` when it has ended."""
    with living_api(settings) as api:
        if api is not None:
            code = run_by_service(settings, api, spec, accept_changes=accept_changes)
            if code is not None:
                return code
    return run_foreground(settings, spec, accept_changes=accept_changes, stay=stay)


def serve(
    home: HomeOption = None,
    host: HostOption = None,
    port: PortOption = None,
    no_web: NoWebOption = False,
    offline_assets: OfflineAssetsOption = None,
) -> int:
    """Serve the home without a run of its own: what is unfinished there goes on."""
    settings = load_settings(
        home=home, host=host, port=port, no_web=no_web or None, offline_assets=offline_assets
    )
    return run_foreground(settings, None, accept_changes=False)


def asked_spec(context: typer.Context, spec_path: Path | None) -> RunSpec:
    """Return the spec of the file, or of the flags; flags beside a file are refused."""
    given = {
        key: value
        for key, value in context.params.items()
        if key not in _NEITHER and value not in (None, [], ())
    }
    if spec_path is None:
        return _from_flags(given)
    typed = [key for key in given if _is_typed(context, key)]
    if typed:
        flags = ", ".join(f"--{key.replace('_', '-')}" for key in typed)
        raise InputError(
            f"{flags} cannot stand beside {spec_path}",
            hint="Write it in the spec",
        )
    return load_spec(spec_path)


def _is_typed(context: typer.Context, key: str) -> bool:
    """Return whether a flag stands on the command line itself, not in the environment."""
    source = context.get_parameter_source(key)
    return source is not None and source.name == "COMMANDLINE"


def _from_flags(given: dict[str, Any]) -> RunSpec:
    missing = [
        flag
        for key, flag in (("output_dir", "--output-dir"), ("server_url", "--server-url"))
        if key not in given
    ]
    if missing:
        raise InputError(
            f"{' and '.join(missing)} missing",
            hint="Give a SPEC.toml, or --output-dir and --server-url; see longwatch run --help",
        )
    sampling = {key: given.pop(key) for key in _SAMPLING if key in given}
    values = {key: given.pop(key) for key in _SPEC_VALUES if key in given}
    template = _template(given.pop("chat_template_kwargs", None))
    fields = {_RENAMED.get(key, key): value for key, value in given.items()}
    with spec_errors_as_input():
        spec = spec_from_flags(RunFlags(**fields, sampling=sampling, chat_template_kwargs=template))
    return resolve_paths(replace(spec, **values), Path.cwd())


def _template(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InputError(f"--chat-template-kwargs is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"--chat-template-kwargs is {text}, not a JSON object")
    return value
