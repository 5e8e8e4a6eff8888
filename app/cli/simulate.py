"""`simulate`: a server that speaks SGLang's protocol, as a process of its own."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable
from typing import Annotated, Any

import typer
import uvloop

from app.cli.options import EXIT_ERROR, EXIT_OK, epilog
from app.cli.voice import say
from app.errors import LongwatchError
from app.settings import PREFIX
from app.simulator.answers import LengthModel
from app.simulator.server import serve as serve_simulator
from app.simulator.settings import SimulatorSettings

_DEFAULTS = SimulatorSettings()
_FAULTS = (
    "Faults, by POST while it serves: /sim/freeze and /sim/unfreeze (it answers nothing, and goes"
    " on), /sim/exit (it dies at once), /sim/set (settings change, such as"
    " '{\"max_queued\": 0}'). GET /sim/counters tells what it has done."
)


def add_commands(application: typer.Typer) -> None:
    """Register the command of this module."""
    told = f"{_FAULTS}\n\n{epilog('longwatch simulate --port 30000 --time-factor 20')}"
    application.command(epilog=told)(simulate)


def _twin(name: str, about: str, **bounds: Any) -> typer.models.OptionInfo:
    # not LONGWATCH_PORT and the like: those are the service's
    variable = f"{PREFIX}SIMULATE_{name.upper().replace('-', '_')}"
    option: typer.models.OptionInfo = typer.Option(
        f"--{name}", envvar=variable, help=about, **bounds
    )
    return option


def simulate(  # noqa: PLR0913, PLR0917 - one parameter for each flag
    port: Annotated[int, _twin("port", "Port, 0 for a free one.", min=0, max=65_535)] = 30_000,
    host: Annotated[str, _twin("host", "Address to listen on.")] = "127.0.0.1",
    time_factor: Annotated[
        float, _twin("time-factor", "How many times as fast as a real server.")
    ] = 1.0,
    mean_tokens: Annotated[float, _twin("mean-tokens", "Mean length of answers.")] = 1500.0,
    fixed_tokens: Annotated[
        int | None, _twin("fixed-tokens", "Every answer has this length, not a mean.", min=1)
    ] = None,
    kv_tokens: Annotated[
        int, _twin("kv-tokens", "Tokens that the KV pool holds.")
    ] = _DEFAULTS.kv_tokens,
    max_running: Annotated[
        int, _twin("max-running", "Requests that run at once.")
    ] = _DEFAULTS.max_running,
    max_queued: Annotated[
        int | None,
        _twin("max-queued", "Requests that wait; more are refused.", min=0, show_default="no end"),
    ] = None,
    context_length: Annotated[
        int, _twin("context-length", "Tokens of prompt and answer together.")
    ] = _DEFAULTS.context_length,
    incremental: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, _twin("incremental", "Stream only what is new, not the whole answer each time.")
    ] = False,
    api_key: Annotated[
        str | None, _twin("api-key", "The key that requests must bring.", show_default="none")
    ] = None,
    until_input_ends: Annotated[bool, typer.Option("--until-input-ends", hidden=True)] = False,  # noqa: FBT002 - a flag
) -> int:
    """Serve what speaks SGLang's protocol: a KV pool, a queue, real pacing, invented answers."""
    try:
        settings = SimulatorSettings(
            host=host,
            port=port,
            time_factor=time_factor,
            kv_tokens=kv_tokens,
            max_running=max_running,
            context_length=context_length,
            max_queued=max_queued,
            incremental=incremental,
            api_key=api_key,
            lengths=LengthModel(
                mean_tokens=mean_tokens, cap_tokens=context_length, fixed_tokens=fixed_tokens
            ),
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_simulate(settings, watch_input=until_input_ends))
    except (ValueError, OSError) as error:
        raise LongwatchError(
            f"cannot simulate on {host}:{port}: {error}", hint="Choose another --port"
        ) from error


async def _simulate(settings: SimulatorSettings, *, watch_input: bool) -> int:
    task = asyncio.current_task()
    told = False

    def end() -> None:
        nonlocal told
        told = True
        if task is not None:
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    if watch_input:
        loop.add_reader(0, _read_input, end)
    with contextlib.suppress(asyncio.CancelledError):
        await serve_simulator(settings, _announcer(settings))
    return EXIT_OK if told else EXIT_ERROR


def _read_input(end: Callable[[], None]) -> None:
    """End when the input does: whoever started us is gone."""
    if not os.read(0, 4096):
        asyncio.get_running_loop().remove_reader(0)
        end()


def _announcer(settings: SimulatorSettings) -> Callable[[str], None]:
    def announce(url: str) -> None:
        say(json.dumps({"url": url, "time_factor": settings.time_factor}))

    return announce
