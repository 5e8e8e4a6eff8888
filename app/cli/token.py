"""`token`: where the tokens of a home are, and new ones in the place of those that leaked.

Invariant: a token is never printed and never an argument; what is said is the file that holds it.
"""

import threading
from pathlib import Path
from typing import Annotated

import httpx
import typer

from app.cli.options import EXIT_ERROR, EXIT_OK, HomeOption, epilog
from app.cli.voice import complain, say
from app.errors import InputError, NotFoundError
from app.gate.keys import CLI_AGENT
from app.gate.token_file import TOKEN_NAME, VIEW_TOKEN_NAME, read_token, rotate
from app.ledger import lock
from app.settings import PREFIX, Settings, load_settings

_TRIES, _EVERY_S, _TIMEOUT_S = 8, 1.0, 5.0
_TAKEN = 200
_ENVIRONMENT = {TOKEN_NAME: f"{PREFIX}TOKEN", VIEW_TOKEN_NAME: f"{PREFIX}VIEW_TOKEN"}
_MEANING = {TOKEN_NAME: "token of operators", VIEW_TOKEN_NAME: "token of those who may only look"}


def add_commands(application: typer.Typer) -> None:
    application.command(name="token", epilog=epilog("longwatch token rotate --view"))(token)


def token(
    action: Annotated[
        str | None,
        typer.Argument(metavar="[rotate]", help="Put a new token in the place of the old one."),
    ] = None,
    view: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option(
            "--view",
            envvar=f"{PREFIX}VIEW",
            help="The token of those who may only look, made if there is none.",
        ),
    ] = False,
    home: HomeOption = None,
) -> int:
    """Say where the tokens of a home are; `rotate` makes a new one.

    A service that lives on the home takes it within seconds: whoever logged in with the old one is
    logged out. No token is printed: read it from its file.
    """
    settings = load_settings(home=home)
    if action is None:
        for name in (TOKEN_NAME, VIEW_TOKEN_NAME):
            say(_where(settings, name))
        return EXIT_OK
    if action != "rotate":
        raise InputError(
            f'token: "{action}" is no action', hint="write longwatch token, or token rotate"
        )
    return _rotate(settings, VIEW_TOKEN_NAME if view else TOKEN_NAME)


def _where(settings: Settings, name: str) -> str:
    """Say where a token comes from."""
    meaning = _MEANING[name]
    if _is_given(settings, name):
        return f"{meaning}: from {_ENVIRONMENT[name]} in this environment"
    if read_token(settings.home, name):
        return f"{meaning}: in {settings.home.absolute() / name}"
    if name == TOKEN_NAME:
        return f"{meaning}: none yet; the service makes one at its first start"
    return f"{meaning}: none; longwatch token rotate --view makes one"


def _rotate(settings: Settings, name: str) -> int:
    home, meaning = settings.home, _MEANING[name]
    if _is_given(settings, name):
        raise InputError(
            f"the {meaning} comes from {_ENVIRONMENT[name]}, not from a file of the home",
            hint=f"set another {_ENVIRONMENT[name]} and start the service again; openssl rand -hex"
            " 24 makes one",
        )
    if not home.is_dir():
        raise NotFoundError(
            f"there is no home in {home.absolute()}",
            hint="start a service there, or name the right folder with --home",
        )
    had_one = read_token(home, name) is not None
    path = rotate(home, name)
    say(f"The new {meaning} is in {path.absolute()}.")
    holder = lock.living_service(home)
    if holder is None or not holder.address:
        say("No service lives on this home; the next one takes it.")
        return EXIT_OK
    if _is_taken(holder.address, path):
        rest = "; whoever logged in with the old one is logged out" if had_one else ""
        say(f"The service has taken it{rest}.")
        return EXIT_OK
    complain(
        f"error: the service at {holder.address} does not take it. If it was started with"
        f" {_ENVIRONMENT[name]}, that one counts: set another there and start it again"
    )
    return EXIT_ERROR


def _is_given(settings: Settings, name: str) -> bool:
    return (settings.token if name == TOKEN_NAME else settings.view_token) is not None


def _is_taken(address: str, path: Path) -> bool:
    """Wait until the service opens its door to the token in the file."""
    shown = {"authorization": f"Bearer {path.read_text().strip()}", "user-agent": CLI_AGENT}
    with httpx.Client(
        base_url=address, headers=shown, trust_env=False, timeout=_TIMEOUT_S
    ) as client:
        for _ in range(_TRIES):
            # what is refused counts as a wrong token: fewer than bar this machine from the login
            threading.Event().wait(_EVERY_S)
            try:
                if client.get("/api/v1/runs").status_code == _TAKEN:
                    return True
            except httpx.HTTPError:
                return False
    return False
