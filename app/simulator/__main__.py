"""`python -m app.simulator`: the simulated server as a process of its own.

Prints one line `{"url": "http://127.0.0.1:PORT"}` when it serves; every setting is a flag.
Ends on SIGTERM and SIGINT, and with status 1 when the script or a poisoned request kills it.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import uvloop

from app.simulator.answers import LengthModel
from app.simulator.server import serve
from app.simulator.settings import SimulatorSettings

_LENGTHS = {"mean_tokens": float, "cap_tokens": int, "sigma": float, "fixed_tokens": int}
_TYPES = {"int": int, "float": float, "str": str, "int | None": int, "str | None": str}


def parse(arguments: Sequence[str]) -> SimulatorSettings:
    parser = argparse.ArgumentParser(prog="python -m app.simulator", description=__doc__)
    defaults = SimulatorSettings()
    for setting in fields(SimulatorSettings):
        if setting.name == "lengths":
            continue
        flag, default = f"--{setting.name.replace('_', '-')}", getattr(defaults, setting.name)
        if isinstance(default, bool):
            parser.add_argument(flag, default=default, action=argparse.BooleanOptionalAction)
        else:
            kind = setting.type if isinstance(setting.type, str) else _name(setting.type)
            parser.add_argument(flag, default=default, type=_TYPES[kind])
    for name, number in _LENGTHS.items():
        default = getattr(defaults.lengths, name)
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, type=number)
    given: dict[str, Any] = vars(parser.parse_args(arguments))
    lengths = LengthModel(**{name: given.pop(name) for name in _LENGTHS})
    return SimulatorSettings(lengths=lengths, **given)


def _name(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


async def run(settings: SimulatorSettings) -> int:
    """Serve until told to end; return the status of the process."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    told = False

    def end() -> None:
        nonlocal told
        told = True
        if task is not None:
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    with contextlib.suppress(asyncio.CancelledError):
        await serve(settings, _announce)
    return 0 if told else 1


def _announce(url: str) -> None:
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    settings = parse(sys.argv[1:] if arguments is None else arguments)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run(settings))


if __name__ == "__main__":
    sys.exit(main())
