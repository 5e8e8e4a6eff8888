"""POST: the button that sends a test message, and what each target answered to it.

A plain form is answered with a page, one of htmx with a message. Nothing of the form is read: an
address never comes from a page.
"""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from app.api import ServiceDoor
from app.api.notifying import no_target
from app.notifying import Told
from app.web.pages import document
from app.web.rendering import page


def told_page(told: Sequence[Told], request: Request | None) -> str:
    """Return what each target answered, as a page."""
    body = page("notify_test.html", {"told": told})
    return document("Test message · Longwatch", body, request=request)


def notifying_forms(service: ServiceDoor) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.post("/notify-test")
    async def notify_test(request: Request) -> Response:
        if not service.notified():
            raise no_target()
        told = await service.notify_test(request.state.who)
        if request.headers.get("hx-request") == "true":
            said = "; ".join(each.sentence for each in told)
            return HTMLResponse(page("toast.html", {"said": said, "undo": None}))
        return HTMLResponse(told_page(told, request))

    return router
