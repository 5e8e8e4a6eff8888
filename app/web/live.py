"""One look for everybody: the sheet of each page that is watched, made and encoded once a tick.

Owns who watches what. Invariants: a page that nobody watches costs nothing; N viewers cost one
sheet and one encoding; there is no queue per viewer, who is slow takes the newest and skips the
rest; nothing is kept of a viewer that has gone. All on one event loop; sheets are made in threads.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Hashable
from dataclasses import dataclass, field

from app.clock import Clock
from app.errors import ConflictError, NotFoundError
from app.web.frames import Differ, Draw, Frame, encode
from app.web.kinds import PageKey
from app.web.sheet import Sheet

logger = logging.getLogger("longwatch")

MAX_STREAMS = 3  # of one browser: HTTP/1.1 gives it six connections to this address for all
HEARTBEAT_S = 8.0  # proxies cut a connection that is silent for longer
POLLED_KEPT_S = 10.0
RETRY = b"retry: 1000\n\n"
HEARTBEAT = b": still here\n\n"
BYE = b"event: bye\ndata: {}\n\n"


@dataclass(slots=True, eq=False)
class _Page:
    """One page: its differ, and what was encoded of the newest look."""

    key: PageKey
    differ: Differ
    polled_at_s: float
    assets: str = ""
    n_viewers: int = 0
    is_gone: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)
    encoded: dict[object, bytes] = field(default_factory=dict)

    def wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()

    def beat(self) -> bytes:
        """Return the word that the page was looked at and nothing had changed."""
        return encode(self.differ.head())

    def body(self, seen: int | None, has: str | None) -> bytes | None:
        """Return the frame for a viewer that saw that look, None if there is nothing new."""
        if seen == self.differ.number:
            return None
        if seen is None or not self.differ.knows(seen):
            is_drawn = has == self.differ.structure
            return self._once(("full", is_drawn), lambda: self._whole(has))
        return self._once(("since", seen), lambda: self.differ.since(seen)) or None

    def _whole(self, has: str | None) -> Frame:
        """Return everything; it is what a page hears first of a service that was started again."""
        told = {"assets": self.assets} if self.assets else {}
        return {**self.differ.full(has), **told}

    def _once(self, what: Hashable, make: Callable[[], Frame | None]) -> bytes:
        if what not in self.encoded:
            frame = make()
            self.encoded[what] = encode(frame) if frame else b""
        return self.encoded[what]


class Seat:
    """A place among the streams of one browser, on one page. Leave it once, whatever happens."""

    def __init__(self, page: _Page, seats: Counter[str], browser: str) -> None:
        self.page = page
        self._seats = seats
        self._browser = browser
        page.n_viewers += 1
        seats[browser] += 1

    def leave(self) -> None:
        self.page.n_viewers -= 1
        self._seats[self._browser] -= 1
        if not self._seats[self._browser]:
            del self._seats[self._browser]


class LivePages:
    """See the module. `make_sheet` is called in a thread; None means that there is no such page.

    `assets` is the version of our script and style; every whole frame says it.
    """

    def __init__(
        self,
        make_sheet: Callable[[PageKey], Sheet | None],
        clock: Clock,
        draw: Draw,
        assets: str = "",
    ) -> None:
        self._make_sheet = make_sheet
        self._clock = clock
        self._draw = draw
        self._assets = assets
        self._boot = secrets.token_hex(3)
        self._number = 0
        self._pages: dict[PageKey, _Page] = {}
        self._entering = asyncio.Lock()
        self._seats: Counter[str] = Counter()
        self._trouble: dict[PageKey, str] = {}
        self.is_closing = False
        self.n_sheets = 0

    @property
    def n_viewers(self) -> int:
        return sum(page.n_viewers for page in self._pages.values())

    @property
    def n_pages(self) -> int:
        return len(self._pages)

    async def tick(self) -> None:
        """Look at every page that is watched, and wake its viewers. Never raises for one page."""
        for page in list(self._pages.values()):
            if self._is_forgotten(page):
                self._forget(page)
            elif not self.is_closing:
                await self._look(page)

    def say(self, key: PageKey, text: str) -> None:
        """Have a change of state spoken on a page, with its next frame, if somebody watches."""
        if key in self._pages:
            self._pages[key].differ.say(text)

    def close(self) -> None:
        """Let every stream say good-bye and end; no new one begins. Safe to repeat."""
        self.is_closing = True
        for page in self._pages.values():
            page.wake()

    def dismiss(self) -> None:
        """End every stream, for who may come in has changed; who still may opens a new one."""
        for page in self._pages.values():
            page.is_gone = True
            page.wake()

    async def take_seat(self, key: PageKey, browser: str) -> Seat:
        """Admit a stream. Raises ConflictError for one too many, NotFoundError for no such page."""
        page = await self._enter(key)
        if self._seats[browser] >= MAX_STREAMS:
            raise ConflictError(
                f"this browser has {MAX_STREAMS} live pages open already",
                hint="this one asks for its figures every two seconds instead",
            )
        return Seat(page, self._seats, browser)

    async def stream(
        self, seat: Seat, has: str | None, after: str = ""
    ) -> AsyncGenerator[bytes, None]:
        """Give the events of a seat's page, the newest first, until it is gone or all is closed."""
        page, seen = seat.page, self._number_in(after)
        yield RETRY
        while not (self.is_closing or page.is_gone):
            news = page.news  # before looking, so that nothing is missed while this one is sent
            body, seen = page.body(seen, has), page.differ.number
            if body is not None:
                yield b"id: %s-%d\ndata: %s\n\n" % (self._boot.encode(), seen, body)
            else:
                yield b"event: beat\ndata: %s\n\n" % page.beat()
            while not await _comes(news):
                yield HEARTBEAT
        if not page.is_gone:  # how it ended, if that came together with the end
            body, seen = page.body(seen, has), page.differ.number
            if body is not None:
                yield b"id: %s-%d\ndata: %s\n\n" % (self._boot.encode(), seen, body)
        yield BYE

    async def poll(self, key: PageKey, has: str | None, after: str = "") -> bytes:
        """Return what changed since a frame, all if that is not known, a beat if nothing did."""
        page = await self._enter(key)
        page.polled_at_s = self._clock.monotonic()
        return page.body(self._number_in(after), has) or page.beat()

    def _number_in(self, seq: str) -> int | None:
        boot, _, number = seq.rpartition("-")
        return int(number) if boot == self._boot and number.isdecimal() else None

    def _is_forgotten(self, page: _Page) -> bool:
        is_polled = self._clock.monotonic() - page.polled_at_s <= POLLED_KEPT_S
        return page.is_gone or not (page.n_viewers or is_polled)

    def _forget(self, page: _Page) -> None:
        if self._pages.get(page.key) is page:  # a new page may have taken the key of a gone one
            del self._pages[page.key]

    async def _enter(self, key: PageKey) -> _Page:
        """Return the page of a key, made now if nobody watched it so far."""
        async with self._entering:
            known = self._pages.get(key)
            if known is not None and not known.is_gone:
                return known
            sheet = await self._sheet(key)
            if sheet is None:
                raise NotFoundError("there is no such page", hint="see all runs at /")
            self._number += 1
            at = self._clock.now()
            differ = Differ(self._draw, self._boot, sheet, number=self._number, at=at)
            page = _Page(key, differ, self._clock.monotonic(), assets=self._assets)
            self._pages[key] = page
            return page

    async def _look(self, page: _Page) -> None:
        try:
            sheet = await self._sheet(page.key)
            if sheet is not None:
                self._number += 1
                page.differ.next(sheet, number=self._number, at=self._clock.now())
                page.encoded.clear()
        except NotFoundError:
            sheet = None
        except Exception as error:
            # one page that cannot be drawn stops neither the others nor the service; its viewers
            # see its age grow
            if self._trouble.get(page.key) != repr(error):
                logger.exception("the live page %s cannot be made", page.key)
            self._trouble[page.key] = repr(error)
            return
        self._trouble.pop(page.key, None)
        page.is_gone = sheet is None
        page.wake()

    async def _sheet(self, key: PageKey) -> Sheet | None:
        self.n_sheets += 1
        return await asyncio.to_thread(self._make_sheet, key)


async def _comes(news: asyncio.Event) -> bool:
    """Return whether the news came before a heartbeat is due."""
    try:
        async with asyncio.timeout(HEARTBEAT_S):
            await news.wait()
    except TimeoutError:
        return False
    return True
