"""The gate before every route: host, origin, token, size of the body; and headers on the way out.

Pure ASGI, so that nothing runs before it. Invariants: a request that is refused has touched
nothing; only `/healthz` is answered without the token; no answer ever allows another origin.
"""

import hmac
import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = dict[bytes, list[bytes]]

OPEN_PATH = "/healthz"
MAX_BODY_BYTES = 4_000_000
_READING = frozenset({"GET", "HEAD"})
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class Refusal(Exception):  # noqa: N818 - it ends a request, it is no fault of ours
    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"code": code, "message": message, "hint": hint}}


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """Return every Host header that means this listener."""
    names = {"localhost", "127.0.0.1", "[::1]"}
    if host in _WILDCARDS:
        names |= {socket.gethostname().lower()}
        with suppress(OSError):
            names |= set(socket.gethostbyname_ex(socket.gethostname())[2])
    else:
        names.add(f"[{host}]" if ":" in host else host.lower())
    return frozenset(f"{name}:{port}" for name in names)


class Gate:
    """ASGI middleware; see the module."""

    def __init__(self, app: App, *, token: str, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            self._check(scope)
        except Refusal as refusal:
            await _answer(refusal, send)
            return
        await self._app(scope, receive, _with_headers(send))

    def _check(self, scope: Scope) -> None:
        headers: Headers = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        host = self._host(headers)
        if scope["method"] not in _READING:
            _check_origin(headers, host)
            _check_body(headers)
        if scope["path"] != OPEN_PATH:
            self._check_token(headers)

    def _host(self, headers: Headers) -> str:
        given = headers.get(b"host", [])
        if len(given) != 1:
            raise Refusal(400, "bad_host", "a request needs exactly one Host header")
        host = given[0].decode("latin-1").lower()
        if host not in self._hosts:
            raise Refusal(
                421,
                "foreign_host",
                "this service is not reached under that name",
                "use " + " or ".join(sorted(self._hosts)),
            )
        return host

    def _check_token(self, headers: Headers) -> None:
        given = headers.get(b"authorization", [b""])
        scheme, _, token = given[0].partition(b" ")
        is_bearer = scheme.lower() == b"bearer" and len(given) == 1
        # compared even if the scheme is wrong, so that the answer takes as long in both cases
        is_right = hmac.compare_digest(token.strip(), self._token)
        if not (is_bearer and is_right):
            raise Refusal(
                401,
                "no_token",
                "the token is missing or wrong",
                "send Authorization: Bearer with the content of the file token in the home folder",
            )


def _check_origin(headers: Headers, host: str) -> None:
    """Refuse what a page of another origin makes a browser send (sec-03)."""
    origins = headers.get(b"origin", [])
    own = {f"http://{host}".encode(), f"https://{host}".encode()}
    if any(origin.lower() not in own for origin in origins):
        raise Refusal(403, "foreign_origin", "requests of other pages may not change anything")
    sites = headers.get(b"sec-fetch-site", [])
    if any(site not in (b"same-origin", b"none") for site in sites):
        raise Refusal(403, "foreign_origin", "requests of other sites may not change anything")


def _check_body(headers: Headers) -> None:
    if b"transfer-encoding" in headers:
        raise Refusal(411, "no_length", "send the body with a Content-Length")
    length = headers.get(b"content-length", [b"0"])[0]
    if not length.isdigit() or int(length) > MAX_BODY_BYTES:
        raise Refusal(413, "too_large", f"a body has at most {MAX_BODY_BYTES:,} bytes")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
        await send(message)

    return sending


async def _answer(refusal: Refusal, send: Send) -> None:
    body = json.dumps(refusal.body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *HEADERS,
    ]
    if refusal.status == 401:  # noqa: PLR2004 - the protocol wants the scheme named
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
