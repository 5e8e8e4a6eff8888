"""A kind of page, and the desk that its sheets are made at.

Owns what a page must say of itself so that its document, its stream and its frames are served:
nothing else registers a page. A kind makes its sheets from the figures of the recorder's last look
and from bounded reads of the ledger; what is dear to read is kept for some seconds (`Fresh`).
Called from threads.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar, cast

from fastapi import Request

from app.api import ServiceDoor
from app.clock import Clock
from app.ledger.db import Ledger
from app.web.sheet import Sheet

PageKey = tuple[Hashable, ...]
V = TypeVar("V")
_MOST_KEPT = 128


class Fresh:
    """Values that stand for some seconds, whoever asks: many viewers cost one read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._kept: dict[Hashable, tuple[float, object]] = {}

    def get(self, key: Hashable, fresh_s: float, make: Callable[[], V]) -> V:
        """Return the value of a key, made anew where it is older than `fresh_s`."""
        now_s = self._clock.monotonic()
        with self._lock:
            made_at_s, value = self._kept.get(key, (float("-inf"), None))
        if now_s - made_at_s < fresh_s:
            return cast("V", value)
        made = make()
        with self._lock:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = (now_s, made)
        return made

    def forget(self, begin: tuple[Hashable, ...]) -> None:
        """Have every value made anew whose key begins so: an order has just changed it."""
        with self._lock:
            for key in list(self._kept):
                if isinstance(key, tuple) and key[: len(begin)] == begin:
                    del self._kept[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What every kind of page works with."""

    ledger: Ledger
    service: ServiceDoor
    clock: Clock
    fresh: Fresh = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageKind:
    """One kind of page. `name` begins its keys.

    `path` is the route of the document; the stream is served at `<base>/live`, frames at
    `<base>/frame`, with the document's query. `key` reads a request's path and query, in a thread;
    it raises what the person should read (NotFoundError). `address` leads back from a key: a path
    with its query. `sheet` returns None where there is no such page. `is_live`: its figures move;
    a page that is not is drawn once.
    """

    name: str
    path: str
    key: Callable[[Request], PageKey]
    address: Callable[[PageKey], str]
    sheet: Callable[[PageKey], Sheet | None]
    is_live: bool = True

    @property
    def base(self) -> str:
        """The path that stream and frames stand under."""
        return "/runs" if self.path == "/" else self.path

    def live_addresses(self, key: PageKey) -> tuple[str, str]:
        """Return where a page of this kind goes on from: its stream, its frames."""
        path, mark, query = self.address(key).partition("?")
        base = "/runs" if path == "/" else path
        return f"{base}/live{mark}{query}", f"{base}/frame{mark}{query}"
