"""GET `/dev/gallery`: the list of invented states, and each as the page that it would be.

Off unless LONGWATCH_DEV_GALLERY is set: nothing here is of any run, and its buttons order nothing
that exists.
"""

from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from app.api import ServiceDoor
from app.errors import NotFoundError
from app.web.gallery.entries import ENTRIES
from app.web.gallery.overviews import NOTHING_MATCHES
from app.web.gallery.pages import PAGES
from app.web.pages import document
from app.web.rendering import draw, page

ADDRESS = "/dev/gallery"


def address_of(name: str) -> str:
    """Return where an entry hangs, with the query that its page would have."""
    view = NOTHING_MATCHES.get(name)
    query = f"?{urlencode(view.query)}" if view else ""
    return f"{ADDRESS}/{quote(name, safe='')}{query}"


def gallery_routes(service: ServiceDoor) -> APIRouter:
    def only_if_open() -> None:
        if not service.settings.dev_gallery:
            raise NotFoundError("there is no such page", hint="see all runs at /")

    router = APIRouter(
        include_in_schema=False,
        default_response_class=HTMLResponse,
        dependencies=[Depends(only_if_open)],
    )

    @router.get(ADDRESS)
    def hung(request: Request) -> HTMLResponse:
        """List everything that hangs here."""
        listed = [(name, address_of(name)) for name in (*ENTRIES, *PAGES)]
        body = page("gallery/page.html", {"listed": listed})
        return HTMLResponse(document("Gallery · Longwatch", body, request=request))

    @router.get(f"{ADDRESS}/{{name}}")
    def one(name: str, request: Request) -> HTMLResponse:
        if name in PAGES:
            return HTMLResponse(PAGES[name](request))
        if name not in ENTRIES:
            raise NotFoundError(f'no "{name[:80]}" hangs in the gallery', hint=f"see {ADDRESS}")
        sheet = ENTRIES[name]()
        return HTMLResponse(document(sheet.title, draw(sheet.root, sheet), request=request))

    return router
