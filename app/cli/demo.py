"""`demo`: a simulated server beside a run of eight partitions, all in this terminal.

Owns the simulator's process and the demo's folder, `<home>/demo/<n>`. Stopped or killed in the
middle and started again it goes on with the same run; once that has finished, with a new one.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from app.cli.demo_prompts import write_prompts
from app.cli.options import EXIT_CODES_RUN, HomeOption, PortOption, epilog
from app.cli.remote import open_ledger
from app.cli.running import run_spec
from app.cli.voice import say
from app.core.spec import RunSpec
from app.core.spec_flags import RunFlags, spec_from_flags
from app.core.states import RunState
from app.errors import ConflictError, LongwatchError, NotFoundError
from app.files.spec_files import resolve_paths
from app.ledger import runs
from app.ledger.lock import living_service
from app.settings import PREFIX, Settings, load_settings

_STOP_WAIT_S = 5.0


def add_commands(application: typer.Typer) -> None:
    application.command(epilog=epilog("longwatch demo --time-factor 5", EXIT_CODES_RUN))(demo)


def demo(
    home: HomeOption = None,
    port: PortOption = None,
    prompts: Annotated[
        int,
        typer.Option(
            "--prompts", envvar=f"{PREFIX}DEMO_PROMPTS", min=1, max=100_000, help="Per partition."
        ),
    ] = 200,
    time_factor: Annotated[
        float,
        typer.Option(
            "--time-factor",
            envvar=f"{PREFIX}DEMO_TIME_FACTOR",
            min=0.01,
            help="How many times as fast as a real server the simulated one is.",
        ),
    ] = 10.0,
) -> int:
    """Show a run of eight partitions against a simulated server; needs nothing else."""
    settings = load_settings(home=home, port=port)
    holder = living_service(settings.home)
    if holder is not None and holder.address:
        raise ConflictError(
            f"the demo runs already, at {holder.address}", hint="Open that, or give another --home"
        )
    number = _number(settings.home)
    folder = settings.home.absolute() / "demo" / str(number)
    write_prompts(folder, prompts)
    server_port = _server_port(folder / "server-port")
    say(f"Demo {number}: {prompts} prompts in each of eight partitions, in {folder}")
    with _simulator(server_port, time_factor) as url:
        say(f"A simulated server, {time_factor:g} times as fast as a real one, is at {url}")
        # somebody who looks on wants to see the end, too; a script wants the exit code
        stay = sys.stdout.isatty()
        settings = _with_roots(settings, folder.parent)
        return run_spec(settings, _spec(number, folder, url), accept_changes=False, stay=stay)


def _with_roots(settings: Settings, folder: Path) -> Settings:
    """Let further runs be begun in the browser with the demo's prompts, unless roots are set."""
    if settings.prompts_roots or ":" in str(folder):
        return settings
    return settings.model_copy(
        update={"prompts_roots": str(folder), "output_roots": settings.output_roots or str(folder)}
    )


def _number(home: Path) -> int:
    """Return the number of the demo that is unfinished, or of a new one."""
    try:
        ledger = open_ledger(home)
    except NotFoundError:
        return 1
    try:
        finished = {run.name for run in runs.list_runs(ledger) if run.state is RunState.FINISHED}
    finally:
        ledger.close()
    return next(n for n in range(1, len(finished) + 2) if _name(n) not in finished)


def _name(number: int) -> str:
    return f"demo-{number}"


def _spec(number: int, folder: Path, url: str) -> RunSpec:
    flags = RunFlags(
        name=_name(number),
        output_dir=str(folder),
        server_urls=[url],
        short_concurrency=64,
        short_max_tokens=10_240,
        long_concurrency=32,
        long_max_tokens=16_384,
        sampling={"temperature": 1.0, "top_p": 0.95},
    )
    return resolve_paths(spec_from_flags(flags), folder)


def _server_port(path: Path) -> int:
    """Return the port of this demo's server: the same again after a stop, so that it is known."""
    if path.exists() and (text := path.read_text().strip()).isdigit():
        return int(text)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    path.write_text(f"{port}\n")
    return port


@contextmanager
def _simulator(port: int, time_factor: float) -> Iterator[str]:
    """Run the simulated server as a child that ends with us, however we end."""
    command = [sys.executable, "-m", "app", "simulate", "--until-input-ends"]
    command += ["--port", str(port), "--time-factor", str(time_factor)]
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the run; the server is ended after it
    )
    try:
        line = process.stdout.readline() if process.stdout else b""
        if not line:
            raise LongwatchError(
                f"the simulated server did not start on port {port}",
                hint="If another program has that port, remove the file server-port of the demo",
            )
        yield str(json.loads(line)["url"])
    finally:
        process.terminate()
        try:
            process.wait(_STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
