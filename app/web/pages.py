"""GET: the pages as whole documents. Each is drawn from the sheet that its stream goes on from."""

from collections.abc import Sequence
from importlib.metadata import version

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup

from app.controls import find_run
from app.core import format as words
from app.core.states import RUN_MOVES
from app.errors import ConflictError, NotFoundError
from app.ledger.db import Ledger
from app.web.assets import CDN_ONLY, own_assets
from app.web.kinds import PageKind
from app.web.overview import About
from app.web.rendering import draw, page

_VERSION = version("longwatch")


def document(
    title: str,
    body: Markup,
    *,
    live: dict[str, str] | None = None,
    request: Request | None = None,
    refresh_s: int = 0,
) -> str:
    """Return a whole page around a body. `live` are the addresses that it goes on from.

    `refresh_s`: without a script it asks for itself again after so long, 0: it does not.

    Without a request it is the page of an error: it orders nothing, and needs no htmx.
    """
    offered = getattr(request.app.state, "offered", CDN_ONLY) if request is not None else None
    who = getattr(request.state, "who", "") if request is not None else ""
    return page(
        "document.html",
        {
            "title": title,
            "body": body,
            "live": live,
            "refresh_s": refresh_s,
            "assets": own_assets(),
            "htmx": offered.script(request) if offered is not None else None,
            "version": _VERSION,
            "who": who,
            "role": getattr(request.state, "role", "") if request is not None else "",
            "can_leave": bool(getattr(request.state, "session", None)) if request else False,
        },
    )


def error_page(
    status: int, code: str, message: str, hint: str, runs: Sequence[tuple[int, str]] = ()
) -> str:
    """Return the page of an error, for a browser that asked for a page.

    `runs` are number and name of those that may have been meant: links in place of the hint.
    """
    said = {"status": status, "code": code, "message": message, "hint": hint}
    body = page("error.html", {**said, "runs": [(n, words.one_line(name)) for n, name in runs]})
    return document(f"{status} · Longwatch", body)


def stop_page(about: About, request: Request | None) -> str:
    """Return the page that asks how a run is to be stopped, for who has no script."""
    body = page("stop.html", {"about": about})
    return document(f"Stop {about.name}?", body, request=request)


def page_routes(ledger: Ledger, kinds: Sequence[PageKind]) -> APIRouter:
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    for kind in kinds:
        _add(router, kind)

    @router.get("/runs")
    def runs_moved() -> RedirectResponse:
        return RedirectResponse("/", 303)

    @router.get("/runs/{run}/stop")
    def ask_stop(run: str, request: Request) -> HTMLResponse:
        found = find_run(ledger, run)
        if (found.state, "stop") not in RUN_MOVES:
            raise ConflictError(f"run {found.id} is {found.state}; there is nothing to stop")
        about = About(run_id=found.id, name=found.name, n_partitions=0, output_dir=found.output_dir)
        return HTMLResponse(stop_page(about, request))

    return router


def _add(router: APIRouter, kind: PageKind) -> None:
    """Serve the documents of a kind: drawn from the sheet that their stream goes on from."""

    @router.get(kind.path)
    def shown(request: Request) -> HTMLResponse:
        key = kind.key(request)
        sheet = kind.sheet(key)
        if sheet is None:
            raise NotFoundError("there is no such page", hint="see all runs at /")
        live = None
        if kind.is_live:
            stream, frame = kind.live_addresses(key)
            live = {"stream": stream, "frame": frame, "structure": sheet.structure}
        body = draw(sheet.root, sheet)
        text = document(sheet.title, body, live=live, request=request, refresh_s=sheet.refresh_s)
        return HTMLResponse(text)
