"""`assets`: local copies of the one script that pages load from a CDN, for places without network.

Owns the three commands and the only request that is ever made for a copy. Invariant: what has not
the size and digest of the lock is not kept, wherever it comes from.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import httpx
import typer

from app.cli.options import EXIT_ERROR, EXIT_OK, OfflineAssetsOption, epilog
from app.cli.voice import say
from app.errors import InputError
from app.settings import Settings, load_settings
from app.web.offline import Pinned, cache_folder, copies_of, folders, keep, pinned, read_from

_TIMEOUT_S = 10.0
_CHUNK_BYTES = 65_536
_HINT = (
    "from a machine that has a network bring the archive that `npm pack {package}@{version}` makes,"
    " and give it to longwatch assets import"
)


def add_commands(application: typer.Typer) -> None:
    group = typer.Typer(
        help="Local copies of what pages load from a CDN.",
        no_args_is_help=True,
        epilog=epilog("longwatch assets status"),
    )
    commands: tuple[tuple[str, Callable[..., int], str], ...] = (
        ("status", status, "longwatch assets status"),
        ("fetch", fetch, "longwatch assets fetch"),
        ("import", import_, "longwatch assets import htmx.org-4.0.1.tgz"),
    )
    for name, command, example in commands:
        group.command(name=name, epilog=epilog(example))(command)
    application.add_typer(group, name="assets")


def status(offline_assets: OfflineAssetsOption = None) -> int:
    """Say which copies there are, and what pages load; exit 1 if a copy is wrong, or missed."""
    settings = load_settings(offline_assets=offline_assets)
    is_good = True
    for wanted in pinned():
        copies = copies_of(wanted, folders(settings.offline_assets))
        good = next((each for each in copies if each.body is not None), None)
        for each in copies:
            if each.fault:
                say(f"{each.path}: {each.fault}; it is not served")
        if good is not None:
            say(f"{wanted.label}: {good.path}, digest as the lock's ({wanted.licence})")
        else:
            places = " or ".join(str(each) for each in folders(settings.offline_assets))
            say(f"{wanted.label}: no copy in {places}")
        say(f"pages: {_use(settings, has_copy=good is not None)}")
        is_missed = good is None and settings.assets == "local"
        is_good = is_good and not is_missed and not any(each.fault for each in copies)
    return EXIT_OK if is_good else EXIT_ERROR


def _use(settings: Settings, *, has_copy: bool) -> str:
    if settings.assets == "off":
        return "no htmx (LONGWATCH_ASSETS=off); figures move, buttons reload the page"
    if settings.assets == "local":
        return (
            "the copy, never the CDN (LONGWATCH_ASSETS=local)"
            if has_copy
            else "no htmx: LONGWATCH_ASSETS=local and there is no copy; buttons reload the page"
        )
    return "the CDN" + (", or the copy where a browser cannot reach it" if has_copy else " alone")


def fetch(offline_assets: OfflineAssetsOption = None) -> int:
    """Fetch the copies from the CDN, by the proxy of the environment; each is checked and kept."""
    place = _place(load_settings(offline_assets=offline_assets))
    for wanted in pinned():
        say(f"{wanted.label}: {fetch_one(wanted, place)}")
    return EXIT_OK


def fetch_one(wanted: Pinned, place: Path) -> Path:
    """Fetch a copy from the first address that answers with the right bytes; return its path.

    Raises InputError that names every address and what was wrong with it.
    """
    failures = []
    with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client:
        for url in wanted.urls:
            try:
                body = _body(client, url, wanted.n_bytes)
            except httpx.HTTPStatusError as error:
                failures.append(f"{url} answers {error.response.status_code}")
            except httpx.HTTPError as error:
                failures.append(f"{url}: {error or type(error).__name__}")
            else:
                fault = wanted.fault(body)
                if fault is None:
                    return keep(wanted, body, place, url)
                failures.append(f"{url} {fault}")
    raise InputError(
        f"{wanted.label} could not be fetched: {'; '.join(failures)}",
        hint=_HINT.format(package=wanted.package, version=wanted.version),
    )


def _body(client: httpx.Client, url: str, most_bytes: int) -> bytes:
    """Read an answer, one byte more than wanted at most: a page of a portal may be long."""
    body = b""
    with client.stream("GET", url) as answer:
        answer.raise_for_status()
        for chunk in answer.iter_bytes(_CHUNK_BYTES):
            body += chunk
            if len(body) > most_bytes:
                break
    return body


def import_(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The .js, the .tgz of npm pack, or a folder.")
    ],
    offline_assets: OfflineAssetsOption = None,
) -> int:
    """Take the copies from a file or folder; each is checked and kept."""
    place = _place(load_settings(offline_assets=offline_assets))
    for wanted in pinned():
        body, source = read_from(wanted, path)
        say(f"{wanted.label}: {keep(wanted, body, place, source)}")
    return EXIT_OK


def _place(settings: Settings) -> Path:
    """Return the folder that copies are kept in."""
    return settings.offline_assets or cache_folder()
