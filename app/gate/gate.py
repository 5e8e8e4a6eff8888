"""The gate before every route: host, origin, body, who comes in; and headers on the way out.

Pure ASGI, so that nothing runs before it. Invariants: a request that is refused has touched
nothing; without a token, a session or the service's own user only `/healthz` and the open paths
are answered; who may only look changes nothing; what changes something without a token comes from
our own page; no answer ever allows another origin.
"""

from app.gate.asking import OPEN_PATH, App, Asking, Receive, Scope, Send, asking_of
from app.gate.headers import sending_safely
from app.gate.hosts import Hosts
from app.gate.keys import Entry, Keys, Role, Way, no_token, only_looking
from app.gate.origin import (
    MAX_BODY_BYTES,
    MAX_OPEN_BODY_BYTES,
    check_body,
    refuse_foreign_change,
    want_own_page,
)
from app.gate.refusals import LOGIN_PATH, LOGOUT_PATH, ErrorPage, Refusal, answer

_TO_COME_AND_GO = frozenset({LOGIN_PATH, LOGOUT_PATH})


class Gate:
    """ASGI middleware; see the module.

    Hands on `request.state.entry` (an Entry; None on an open path, for somebody without a key) and
    `request.state.who`, the user of whatever is ordered; `.session` is true where one could end;
    `.role` is what they may do, "" for somebody without a key.
    """

    def __init__(
        self,
        app: App,
        *,
        keys: Keys,
        hosts: Hosts,
        open_paths: frozenset[str] = frozenset(),
        with_cdn: bool = True,
        error_page: ErrorPage | None = None,
    ) -> None:
        self._app = app
        self._keys = keys
        self._hosts = hosts
        self._open_paths = open_paths | {OPEN_PATH}
        self._with_cdn = with_cdn
        self._error_page = error_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        asking = asking_of(scope)
        send = sending_safely(send, asking.path, with_cdn=self._with_cdn)
        try:
            entry = self._check(asking)
        except Refusal as refusal:
            await answer(refusal, asking, send, self._error_page)
            return
        state = scope.setdefault("state", {})
        state["entry"] = entry
        state["who"] = entry.who if entry else ""
        state["role"] = str(entry.role) if entry else ""
        state["session"] = entry is not None and entry.way is Way.SESSION
        await self._app(scope, receive, send)

    def _check(self, asking: Asking) -> Entry | None:
        host = self._host(asking)
        if asking.changes:
            refuse_foreign_change(asking, host)
        entry = self._entry(asking, host)
        if asking.changes:
            check_body(asking, MAX_BODY_BYTES if entry else MAX_OPEN_BODY_BYTES)
            if entry is None or entry.way is not Way.TOKEN:
                want_own_page(asking, host)
            if entry and entry.role is Role.VIEWER and asking.path not in _TO_COME_AND_GO:
                raise only_looking()
        return entry

    def _entry(self, asking: Asking, host: str) -> Entry | None:
        """Return who comes in; None only where nobody needs to be anybody."""
        if asking.path == OPEN_PATH:
            return None
        entry = self._keys.entry(asking, is_local_name=self._hosts.is_local(host))
        if entry is None and asking.path not in self._open_paths:
            raise no_token()
        return entry

    def _host(self, asking: Asking) -> str:
        given = asking.all("host")
        if len(given) != 1:
            raise Refusal(400, "bad_host", "a request needs exactly one Host header")
        host = given[0].lower()
        if not self._hosts.allows(host):
            raise Refusal(
                421,
                "foreign_host",
                "this service is not reached under that name",
                f"use {self._hosts.shown()}, or add the name to LONGWATCH_ALLOWED_HOSTS",
            )
        return host
