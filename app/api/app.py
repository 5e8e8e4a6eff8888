"""The FastAPI application: routes, errors as one JSON form, and the gate around all of it.

Owns the form of errors: `{"error": {"code", "message", "hint"}}`, never a traceback. Who reads
`internal error <id>` finds that id, with everything, in the service's log.
"""

import logging
import secrets
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from app.api.door import ServiceDoor
from app.api.ordering import ordering_routes
from app.api.reading import reading_routes
from app.api.schemas import ErrorAnswer
from app.api.security import HEADERS, Gate, allowed_hosts
from app.clock import Clock, SystemClock
from app.errors import LongwatchError
from app.ledger.db import Ledger

logger = logging.getLogger("longwatch")
_CODES = {404: "not_found", 405: "bad_method"}


def create_app(
    ledger: Ledger,
    service: ServiceDoor,
    token: str,
    port: int,
    *,
    host: str = "127.0.0.1",
    clock: Clock | None = None,
) -> FastAPI:
    """Return the application that listens on that host and port."""
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
    app.add_api_route("/healthz", _healthy, methods=["GET"], tags=["health"])
    app.add_exception_handler(LongwatchError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_bad_body)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_surprise)
    app.add_middleware(Gate, token=token, hosts=allowed_hosts(host, port))
    return app


async def _healthy() -> dict[str, str]:
    """Say that the service answers, and nothing of any run."""
    return {"status": "ok"}


def _answer(status: int, code: str, message: str, hint: str = "") -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status)


async def _on_error(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, LongwatchError):
        raise error
    return _answer(error.http_status, error.code, error.message, error.hint)


async def _on_bad_body(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    complaints = [
        f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
    ]
    return _answer(422, "bad_input", "; ".join(complaints), "see /api/v1/openapi.json")


async def _on_http(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    code = _CODES.get(error.status_code, "http")
    answer = _answer(error.status_code, code, str(error.detail).lower())
    answer.headers.update(error.headers or {})
    return answer


async def _on_surprise(_request: Request, error: Exception) -> JSONResponse:
    number = secrets.token_hex(4)
    logger.error("internal error %s", number, exc_info=error)
    answer = _answer(
        500, "internal", f"internal error {number}", "look for it in the service's log"
    )
    answer.raw_headers.extend(HEADERS)  # made outside the gate, which adds them to all others
    return answer
