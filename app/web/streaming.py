"""Routes of the live figures: a stream of events, and the same frames for who asks again and again.

Owns who counts as one browser, and that a seat is left however a stream ends. Frames go out as the
bytes that were encoded once. Mounted for every kind of page that lives.
"""

from collections.abc import AsyncGenerator, Sequence

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.sse import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from app.web.kinds import PageKey, PageKind
from app.web.live import LivePages, Seat

# FastAPI adds these only where it encodes each event for each viewer itself
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class LiveResponse(EventSourceResponse):
    """A stream that gives its seat back when it has ended, was cut, or never began."""

    def __init__(self, events: AsyncGenerator[bytes, None], seat: Seat) -> None:
        super().__init__(events, headers=_HEADERS)
        self._events = events
        self._seat = seat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._seat.leave()
            await self._events.aclose()


async def open_stream(pages: LivePages, key: PageKey, request: Request) -> Response:
    """Answer with the events of a page; 409 for a browser's fourth, 503 when the service leaves."""
    if pages.is_closing:
        return Response(status_code=503, headers={"Retry-After": "1"})
    seat = await pages.take_seat(key, browser_of(request))
    query = request.query_params
    after = query.get("after") or request.headers.get("last-event-id", "")
    return LiveResponse(pages.stream(seat, query.get("has"), after), seat)


async def answer_poll(pages: LivePages, key: PageKey, request: Request) -> Response:
    """Answer with one frame at once: what changed since `after`, or everything."""
    if pages.is_closing:
        return Response(status_code=503, headers={"Retry-After": "1"})
    query = request.query_params
    frame = await pages.poll(key, query.get("has"), query.get("after", ""))
    return Response(frame, media_type="application/json", headers={"Cache-Control": "no-store"})


def browser_of(request: Request) -> str:
    """Return what tells one browser from another: its session, or its address and make.

    A session's cookie is a browser's own. Where none is asked for (loopback), two browsers of the
    same make behind one tunnel count as one; the worst of that is that a fourth page polls.
    """
    sessions = sorted(
        each.strip()
        for each in request.headers.get("cookie", "").split(";")
        if each.strip().startswith("longwatch_")
    )
    if sessions:
        return " ".join(sessions)
    host = request.client.host if request.client else ""
    return f"{host} {request.headers.get('user-agent', '')}"


def live_routes(pages: LivePages, kinds: Sequence[PageKind]) -> APIRouter:
    """Return the routes of the stream and of the frames of each kind of page that lives."""
    router = APIRouter(include_in_schema=False)
    for kind in kinds:
        if kind.is_live:
            _add(router, pages, kind)
    return router


def _add(router: APIRouter, pages: LivePages, kind: PageKind) -> None:
    @router.get(f"{kind.base}/live")
    async def stream(request: Request) -> Response:
        return await open_stream(pages, await run_in_threadpool(kind.key, request), request)

    @router.get(f"{kind.base}/frame")
    async def frame(request: Request) -> Response:
        return await answer_poll(pages, await run_in_threadpool(kind.key, request), request)
