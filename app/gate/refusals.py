"""How a request is turned away: to the login page, with a page, or in the API's form of errors."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Protocol
from urllib.parse import quote, urlsplit

from app.gate.asking import Asking, Send

LOGIN_PATH = "/login"
LOGOUT_PATH = "/logout"
MAX_NEXT_CHARS = 2_000
Runs = Sequence[tuple[int, str]]


class ErrorPage(Protocol):
    """Draws an error; `runs` are those that may have been meant: number and name."""

    def __call__(
        self, status: int, code: str, message: str, hint: str, runs: Runs = (), /
    ) -> str: ...


class Refusal(Exception):  # noqa: N818 - it ends a request, it is no fault of ours
    """Status, code, message and hint of an answer that is no answer."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.retry_after_s = retry_after_s


def local_path(wanted: str) -> str:
    r"""Return where to go after the login: a path of this service, `/` for anything else.

    >>> local_path("/runs/7?sort=eta")
    '/runs/7?sort=eta'
    >>> [local_path(one) for one in ("//evil.example", "/\\evil.example", "https://evil.example")]
    ['/', '/', '/']
    """
    is_plain = wanted.isascii() and wanted.isprintable() and "\\" not in wanted
    # browsers drop tabs and line ends, and take \ for /: what is left could name another host
    if not is_plain or not wanted.startswith("/") or wanted.startswith("//"):
        return "/"
    if len(wanted) > MAX_NEXT_CHARS or wanted.partition("?")[0] == LOGIN_PATH:
        return "/"
    return wanted


async def answer(
    refusal: Refusal, asking: Asking, send: Send, error_page: ErrorPage | None
) -> None:
    """Turn a request away in the form that suits it."""
    headers = {}
    if refusal.retry_after_s is not None:
        headers["retry-after"] = str(refusal.retry_after_s)
    if not asking.wants_page:
        told = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
        headers["content-type"] = "application/json"
        if refusal.status == HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = "Bearer"
        await _send(send, refusal.status, headers, json.dumps({"error": told}))
    elif refusal.status == HTTPStatus.UNAUTHORIZED:
        headers["location"] = f"{LOGIN_PATH}?next={quote(_way_back(asking), safe='')}"
        await _send(send, HTTPStatus.SEE_OTHER, headers, "")
    elif error_page is None:
        headers["content-type"] = "text/plain; charset=utf-8"
        text = f"{refusal.message}\n{refusal.hint}\n"
        await _send(send, refusal.status, headers, text)
    else:
        headers["content-type"] = "text/html; charset=utf-8"
        page = error_page(refusal.status, refusal.code, refusal.message, refusal.hint)
        await _send(send, refusal.status, headers, page)


def _way_back(asking: Asking) -> str:
    """Return where the person was: the page asked for, or the one whose form was sent."""
    if not asking.changes:
        query = f"?{asking.query}" if asking.query else ""
        return local_path(quote(asking.path, safe="/:@!$&'()*+,;=~") + query)
    # its origin was checked before: it is a page of ours
    page = urlsplit(asking.first("referer"))
    query = f"?{page.query}" if page.query else ""
    return local_path(page.path + query)


async def _send(send: Send, status: int, headers: Mapping[str, str], text: str) -> None:
    body = text.encode()
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": int(status), "headers": raw})
    await send({"type": "http.response.body", "body": body})
