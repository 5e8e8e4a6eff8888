"""The FastAPI application: the routes of the API, those of the pages, and the gate around them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.middleware.gzip import GZipMiddleware

from app.api.door import ServiceDoor
from app.api.error_forms import ErrorForms
from app.api.exposition import exposition_routes
from app.api.notifying import notifying_routes
from app.api.ordering import ordering_routes
from app.api.reading import reading_routes
from app.api.schemas import ErrorAnswer
from app.clock import Clock, SystemClock
from app.gate import Gate, Hosts, Keys
from app.gate.refusals import ErrorPage
from app.ledger.db import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """What the floor above adds. Without it the API stands alone.

    `open_paths` are answered to everybody; `with_cdn` lets pages load scripts from there;
    `error_page` draws (status, code, message, hint); `shared` is what its routes find in
    `request.app.state`, by name.
    """

    routers: Sequence[APIRouter] = ()
    open_paths: frozenset[str] = frozenset()
    error_page: ErrorPage | None = None
    with_cdn: bool = False
    shared: Mapping[str, object] = field(default_factory=dict)


NO_PAGES = Pages()
_WORTH_PACKING_BYTES = 1_000


def create_app(
    ledger: Ledger,
    service: ServiceDoor,
    keys: Keys,
    hosts: Hosts,
    *,
    clock: Clock | None = None,
    pages: Pages = NO_PAGES,
) -> FastAPI:
    """Return the application that is reached under those names, by who has those keys."""
    refused: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorAnswer} for status in (401, 403, 404, 409, 422, 503)
    }
    app = FastAPI(
        title="Longwatch",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        responses=refused,
    )
    app.include_router(reading_routes(ledger, service))
    app.include_router(ordering_routes(ledger, service, clock or SystemClock()))
    app.include_router(notifying_routes(service))
    app.include_router(exposition_routes(ledger, service))
    app.add_api_route("/healthz", _healthy, methods=["GET"], tags=["health"])
    for name, value in pages.shared.items():
        setattr(app.state, name, value)
    for router in pages.routers:
        app.include_router(router)
    ErrorForms(pages.error_page, with_cdn=pages.with_cdn).attach(app)
    # streams stay as they are
    app.add_middleware(GZipMiddleware, minimum_size=_WORTH_PACKING_BYTES)
    app.add_middleware(
        Gate,
        keys=keys,
        hosts=hosts,
        open_paths=pages.open_paths,
        with_cdn=pages.with_cdn,
        error_page=pages.error_page,
    )
    return app


async def _healthy() -> dict[str, str]:
    """Say that the service answers, and nothing of any run."""
    return {"status": "ok"}
