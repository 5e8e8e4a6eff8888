"""`notify-test`: a test message to whoever is told outside, by the living service or by itself."""

import asyncio

import typer

from app.api.notifying import no_target
from app.cli.options import EXIT_ERROR, EXIT_OK, HomeOption, epilog
from app.cli.remote import living_api
from app.cli.voice import say
from app.clock import SystemClock
from app.notifying import Told, page_address, send_tests, targets_of
from app.settings import Settings, load_settings

_CODES = "Exit codes: 0 every target took it, 1 one did not, or none is set."
_TIMEOUT_S = 60.0


def add_commands(application: typer.Typer) -> None:
    application.command(name="notify-test", epilog=epilog("longwatch notify-test", _CODES))(
        notify_test
    )


def notify_test(home: HomeOption = None) -> int:
    """Send a test message to the webhook and the command that are set; say what each answered.

    A service that lives on the home sends it, with its own settings; else this command does.
    """
    settings = load_settings(home=home)
    with living_api(settings) as api:
        if api is not None:
            answer = api.post("/notify-test", {}, _TIMEOUT_S)
            told = tuple(Told(**each) for each in answer["targets"])
        else:
            told = _by_itself(settings)
    for each in told:
        say(each.sentence)
    return EXIT_OK if all(each.is_ok for each in told) else EXIT_ERROR


def _by_itself(settings: Settings) -> tuple[Told, ...]:
    targets = targets_of(settings)
    if not targets:
        raise no_target()
    page = page_address(settings, "")
    return asyncio.run(send_tests(targets, SystemClock().now(), page))
