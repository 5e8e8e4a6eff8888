"""What a request says of itself, read once from its ASGI scope.

Invariant: nothing here decides. Header values are as they came, several of one name are kept apart,
so that whoever checks one can refuse a second.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Address = tuple[str, int]

OPEN_PATH = "/healthz"
_READING = frozenset({"GET", "HEAD"})
_MACHINE_PATHS = ("/api/", "/metrics", OPEN_PATH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One request. `path` is decoded, `query` is as it came.

    `client` and `server` are the ends of the connection, None off TCP.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, Sequence[str]]
    client: Address | None
    server: Address | None

    @property
    def changes(self) -> bool:
        return self.method not in _READING

    def all(self, name: str) -> Sequence[str]:
        return self.headers.get(name, ())

    def first(self, name: str) -> str:
        """Return the first header of that name, nothing if there is none."""
        return next(iter(self.all(name)), "")

    @property
    def wants_page(self) -> bool:
        """Return whether a browser shows the answer as a page: not for parts, streams, the API."""
        accepted = self.first("accept")
        return (
            "text/html" in accepted
            and "text/event-stream" not in accepted
            and not self.all("hx-request")
            and not is_for_machines(self.path)
        )


def is_for_machines(path: str) -> bool:
    return path.startswith(_MACHINE_PATHS)


def asking_of(scope: Scope) -> Asking:
    """Return what an HTTP scope asks."""
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return Asking(
        method=scope["method"],
        path=scope["path"],
        query=scope.get("query_string", b"").decode("latin-1"),
        headers=headers,
        # the same object for all requests of a connection: `peers.py` knows it again by that
        client=scope.get("client"),
        server=scope.get("server"),
    )
