"""GET `/dev/gallery`: the list of invented states, and each as the page that it would be.

Off unless LONGWATCH_DEV_GALLERY is set: nothing here is of any run, and its buttons order nothing
that exists.
"""

from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from app.api import ServiceDoor
from app.errors import NotFoundError
from app.web.answers import Undo
from app.web.gallery.entries import ENTRIES
from app.web.pages import document
from app.web.rendering import draw, page

ADDRESS = "/dev/gallery"
_MESSAGES = (
    ("B4_code: concurrency 64 → 96", Undo(address="/runs/7/p/4/concurrency"), False),
    ("B6_dialogue paused; 38 half-written answers saved", None, False),
    ("Not sent: the service does not answer, and nothing was changed. " * 2, None, True),
)


def address_of(name: str) -> str:
    return f"{ADDRESS}/{quote(name, safe='')}"


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
        listed = [(name, address_of(name)) for name in (*ENTRIES, "messages")]
        body = page("gallery/page.html", {"listed": listed})
        return HTMLResponse(document("Gallery · Longwatch", body, request=request))

    @router.get(f"{ADDRESS}/messages")
    def messages(request: Request) -> HTMLResponse:
        """Show messages where they appear, for as long as somebody looks."""
        drawn = [
            page("toast.html", {"said": said, "undo": undo, "is_bad": is_bad})
            for said, undo, is_bad in _MESSAGES
        ]
        body = page("gallery/messages.html", {"drawn": drawn})
        return HTMLResponse(document("Messages · Longwatch", body, request=request))

    @router.get(f"{ADDRESS}/{{name}}")
    def one(name: str, request: Request) -> HTMLResponse:
        if name not in ENTRIES:
            raise NotFoundError(f'no "{name[:80]}" hangs in the gallery', hint=f"see {ADDRESS}")
        sheet = ENTRIES[name]()
        return HTMLResponse(document(sheet.title, draw(sheet.root, sheet), request=request))

    return router
