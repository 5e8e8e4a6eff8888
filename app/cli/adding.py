"""`add`: partitions of a spec for a run that exists, by the living service or under its lock.

Owns the choice between the two. Without a service the home is locked while its ledger grows, so
that none is started in between; the new partitions begin when the run next starts.
"""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from app.cli.foreground import WHO
from app.cli.options import EXIT_OK, HomeOption, epilog
from app.cli.remote import Api, living_api, meant, open_ledger
from app.cli.voice import say
from app.clock import SystemClock
from app.core.format import one_line
from app.core.spec import RunSpec, to_json
from app.core.types import RunId
from app.core.views import RunView
from app.errors import InputError
from app.files.spec_files import load_spec
from app.ledger.db import Ledger
from app.ledger.lock import acquire
from app.settings import Settings, load_settings
from app.submission import Added, add_to_run

_FORM = "add [RUN] SPEC.toml"


def add_commands(application: typer.Typer) -> None:
    application.command(epilog=epilog("longwatch add night more.toml"))(add)


def add(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] SPEC.toml", help="The run is left out where only one is live."
        ),
    ],
    home: HomeOption = None,
) -> int:
    """Add the partitions of a spec that the run does not have yet; a finished run goes on.

    What the answers depend on must be as the run has it. What the run has already stays as it is.
    """
    settings = load_settings(home=home)
    *names, spec_path = words
    spec = load_spec(Path(spec_path))
    with closing(open_ledger(settings.home)) as ledger:
        run, rest = meant(ledger, names)
        if rest:
            raise InputError(f"there are too many names: {' '.join(rest)}", hint=_FORM)
        with living_api(settings) as api:
            if api is not None:
                return _by_service(api, run, spec)
        added = asyncio.run(_directly(ledger, settings, run.id, spec))
    _tell(run, list(added.names))
    if added.names:
        say("No service runs on this home: they begin when the run next starts.")
    return EXIT_OK


def _by_service(api: Api, run: RunView, spec: RunSpec) -> int:
    body = {"spec": json.loads(to_json(spec))}
    answer = api.post(f"/runs/{run.id}/partitions", body, timeout_s=None)
    for line in answer["messages"]:
        say(str(line))
    _tell(run, answer["added"])
    return EXIT_OK


async def _directly(ledger: Ledger, settings: Settings, run_id: RunId, spec: RunSpec) -> Added:
    clock = SystemClock()
    lock = await acquire(settings.home, clock)
    try:
        return await add_to_run(ledger, settings, run_id, spec, who=WHO, clock=clock, say=say)
    finally:
        lock.release()


def _tell(run: RunView, names: list[str]) -> None:
    what = f"added {', '.join(names)}" if names else "nothing is new in this spec"
    say(f'run {run.id} "{one_line(run.name)}": {what}')
