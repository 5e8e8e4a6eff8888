"""`status`: looking, without changing a run."""

import json

import typer

from app.api.reading import run_to_json
from app.cli.options import (
    EXIT_OK,
    HomeOption,
    JsonOption,
    RunOption,
    epilog,
)
from app.cli.remote import Api, living_api, open_ledger
from app.cli.voice import say
from app.clock import SystemClock
from app.controls import LIVE, find_run
from app.core import format as words
from app.core.views import RunView
from app.errors import NotFoundError
from app.figures import RunFigures, collect, from_json, to_json
from app.figures.wording import summary
from app.ledger import runs
from app.ledger.db import Ledger
from app.settings import Settings, load_settings


def add_commands(application: typer.Typer) -> None:
    """Register the commands of this module."""
    application.command(epilog=epilog("longwatch status night --json"))(status)


def status(run: RunOption = None, as_json: JsonOption = False, home: HomeOption = None) -> int:  # noqa: FBT002 - a flag of the command line
    """Show how a run stands: of the living service, else from the ledger."""
    settings = load_settings(home=home)
    try:
        ledger = open_ledger(settings.home)
    except NotFoundError:
        if run is not None:
            raise
        say('{"runs": []}' if as_json else f"No run yet in {settings.home.absolute()}.")
        return EXIT_OK
    try:
        known = runs.list_runs(ledger)
        if run is None and not _is_one_meant(known):
            _tell_list(known, as_json=as_json)
        else:
            _tell_run(ledger, settings, find_run(ledger, run), as_json=as_json)
    finally:
        ledger.close()
    return EXIT_OK


def _is_one_meant(known: list[RunView]) -> bool:
    return len([run for run in known if run.state in LIVE] or known) == 1


def _tell_list(known: list[RunView], *, as_json: bool) -> None:
    if as_json:
        say(json.dumps({"runs": [run_to_json(run) for run in known]}))
        return
    for run in known:
        say(f'{run.id} "{words.one_line(run.name)}" {run.state} since {run.state_since:%F %T %z}')
    say("Name one: longwatch status RUN" if known else "No run yet.")


def _tell_run(ledger: Ledger, settings: Settings, run: RunView, *, as_json: bool) -> None:
    with living_api(settings) as api:
        figures = _figures(ledger, settings, run, api)
        address = api.address if api else None
    if as_json:
        service = {"address": address} if address else None
        say(json.dumps({**to_json(figures), "service": service}))
        return
    for line in summary(figures):
        say(line)
    say(f"Service: {address}" if address else "No service runs on this home.")


def _figures(ledger: Ledger, settings: Settings, run: RunView, api: Api | None) -> RunFigures:
    if api is not None:
        return from_json(api.get(f"/runs/{run.id}"))
    return collect(ledger, run, None, settings, SystemClock())
