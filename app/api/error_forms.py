"""What is answered when a route raises: our errors, bad bodies, unknown addresses, surprises.

Owns the form of errors: `{"error": {"code", "message", "hint"}}`, or a page where a browser asked
for one; never a traceback. Who reads `internal error <id>` finds that id, with everything, in the
service's log.
"""

import logging
import secrets

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from app.errors import LongwatchError, NotFoundError, plain_words
from app.gate.asking import asking_of
from app.gate.headers import safe_headers
from app.gate.refusals import ErrorPage, Runs

logger = logging.getLogger("longwatch")
_CODES = {404: "not_found", 405: "bad_method"}


def _writable(words: str) -> str:
    """Return words that can be sent: JSON may bring half a letter, which no encoding can write."""
    return words.encode("utf-8", "backslashreplace").decode()


class ErrorForms:
    """The handlers of one application. `error_page` draws an error for who asked for a page."""

    def __init__(self, error_page: ErrorPage | None, *, with_cdn: bool) -> None:
        self._error_page = error_page
        self._with_cdn = with_cdn

    def attach(self, app: FastAPI) -> None:
        app.add_exception_handler(LongwatchError, self._on_error)
        app.add_exception_handler(RequestValidationError, self._on_bad_body)
        app.add_exception_handler(HTTPException, self._on_http)
        app.add_exception_handler(Exception, self._on_surprise)

    def _answer(
        self,
        request: Request,
        status: int,
        code: str,
        message: str,
        hint: str = "",
        runs: Runs = (),
    ) -> Response:
        message, hint = _writable(message), _writable(hint)
        if self._error_page is not None and asking_of(request.scope).wants_page:
            return HTMLResponse(self._error_page(status, code, message, hint, runs), status)
        return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status)

    async def _on_error(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, LongwatchError):
            raise error
        runs = error.runs if isinstance(error, NotFoundError) else ()
        return self._answer(request, error.http_status, error.code, error.message, error.hint, runs)

    async def _on_bad_body(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, RequestValidationError):
            raise error
        complaints = [
            f"{'.'.join(str(part) for part in one['loc'])}: {plain_words(one['msg'])}"
            for one in error.errors()
        ]
        told = "; ".join(complaints)
        return self._answer(request, 422, "bad_input", told, "see /api/v1/openapi.json")

    async def _on_http(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        code = _CODES.get(error.status_code, "http")
        answer = self._answer(request, error.status_code, code, str(error.detail).lower())
        answer.headers.update(error.headers or {})
        return answer

    async def _on_surprise(self, request: Request, error: Exception) -> Response:
        number = secrets.token_hex(4)
        logger.error("internal error %s", number, exc_info=error)
        hint = "look for it in the service's log"
        answer = self._answer(request, 500, "internal", f"internal error {number}", hint)
        # made outside the gate, which adds them to all others
        answer.raw_headers = safe_headers(
            request.url.path, answer.raw_headers, with_cdn=self._with_cdn
        )
        return answer
