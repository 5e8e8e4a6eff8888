"""One look for everybody: N viewers cost one sheet; nobody waits for, or grows by, a slow one."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import orjson
import pytest

from app.clock import SystemClock
from app.errors import ConflictError, NotFoundError
from app.web import frames, live
from app.web.frames import Frame
from app.web.kinds import PageKey
from app.web.live import MAX_STREAMS, LivePages, Seat
from app.web.sheet import Sheet
from tests.web.sketches import Viewer, counter_page, draw

KEY: PageKey = ("run", 1, "1h")
OTHER: PageKey = ("runs",)


@dataclass
class Works:
    """Pages that count how often they were made."""

    n: int = 0
    made: list[PageKey] = field(default_factory=list)
    trouble: Exception | None = None
    missing: set[PageKey] = field(default_factory=set)

    def make(self, key: PageKey) -> Sheet | None:
        self.made.append(key)
        if self.trouble:
            raise self.trouble
        return None if key in self.missing else counter_page(self.n)


@pytest.fixture
def works() -> Works:
    return Works()


@pytest.fixture
def pages(works: Works) -> LivePages:
    return LivePages(works.make, SystemClock(), draw)


class Watcher:
    """Somebody who looks at a page by its stream."""

    def __init__(self, pages: LivePages, seat: Seat, has: str | None, after: str = "") -> None:
        self.seat = seat
        self.events: AsyncGenerator[bytes, None] = pages.stream(seat, has, after)

    @classmethod
    async def come(cls, pages: LivePages, browser: str = "a", has: str | None = None) -> "Watcher":
        return cls(pages, await pages.take_seat(KEY, browser), has)

    async def event(self) -> tuple[str, Frame]:
        """Return name and content of the next event; comments and settings are none."""
        while True:
            fields = dict(
                line.split(": ", 1)
                for line in (await anext(self.events)).decode().splitlines()
                if line
            )
            if "data" in fields:
                return fields.get("event", "message"), orjson.loads(fields["data"])

    async def leave(self) -> None:
        await self.events.aclose()
        self.seat.leave()


async def test_a_hundred_viewers_cost_one_sheet_a_tick(pages: LivePages, works: Works) -> None:
    watchers = [await Watcher.come(pages, f"browser {n}") for n in range(100)]
    for each in watchers:
        await each.event()
    assert len(works.made) == 1
    for tick in range(1, 4):
        works.n = tick
        waiting = [asyncio.ensure_future(each.event()) for each in watchers]
        await pages.tick()
        events = await asyncio.gather(*waiting)
        assert {frame["texts"]["head"] for _, frame in events} == {f"look {tick}"}
        assert len(works.made) == 1 + tick == pages.n_sheets
    assert pages.n_viewers == 100
    for each in watchers:
        await each.leave()
    assert pages.n_viewers == 0


async def test_a_frame_is_encoded_once_for_all(
    pages: LivePages, works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[Frame] = []

    def counting(frame: Frame) -> bytes:
        encoded.append(frame)
        return frames.encode(frame)

    monkeypatch.setattr(live, "encode", counting)
    watchers = [await Watcher.come(pages, f"browser {n}") for n in range(20)]
    for each in watchers:
        await each.event()
    assert len(encoded) == 1
    works.n = 1
    await pages.tick()
    for each in watchers:
        await each.event()
    assert len(encoded) == 2


async def test_a_slow_viewer_takes_the_newest_and_misses_nothing(
    pages: LivePages, works: Works
) -> None:
    slow = await Watcher.come(pages)
    viewer = Viewer(counter_page(0))
    viewer.apply((await slow.event())[1])
    for works.n in range(1, 40):
        await pages.tick()
    _, frame = await slow.event()
    viewer.apply(frame)
    assert viewer.shows(counter_page(39), with_lines=False)
    assert "html" not in frame
    waiting = asyncio.ensure_future(slow.event())
    works.n = 40
    await pages.tick()
    assert (await waiting)[1]["texts"]["head"] == "look 40"


async def test_who_slept_for_minutes_gets_the_whole(pages: LivePages, works: Works) -> None:
    slow = await Watcher.come(pages, has="an older page")
    viewer = Viewer(counter_page(0))
    assert "html" in (await slow.event())[1]
    for works.n in range(1, 100):
        await pages.tick()
    viewer.apply((await slow.event())[1])
    assert viewer.shows(counter_page(99))


async def test_a_look_that_finds_nothing_new_is_told_as_a_beat(
    pages: LivePages, works: Works
) -> None:
    watcher = await Watcher.come(pages)
    _, first = await watcher.event()
    waiting = asyncio.ensure_future(watcher.event())
    await pages.tick()
    name, beat = await waiting
    assert name == "beat"
    assert beat.keys() == {"seq", "at"}
    assert beat["at"] >= first["at"]
    assert beat["seq"] > first["seq"]


async def test_silence_is_filled_with_comments(
    pages: LivePages, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert live.HEARTBEAT_S <= 10, "proxies and the page's own watch need one in ten seconds"
    monkeypatch.setattr(live, "HEARTBEAT_S", 0.01)
    watcher = await Watcher.come(pages)
    await watcher.event()
    assert await anext(watcher.events) == live.HEARTBEAT
    assert await anext(watcher.events) == live.HEARTBEAT


async def test_a_page_that_nobody_watches_costs_nothing(pages: LivePages, works: Works) -> None:
    watcher = await Watcher.come(pages)
    await watcher.event()
    await watcher.leave()
    pages._pages[KEY].polled_at_s -= 60  # as if it had been made a minute ago
    await pages.tick()
    assert pages.n_pages == 0
    n_made = len(works.made)
    await pages.tick()
    assert len(works.made) == n_made


async def test_the_fourth_stream_of_one_browser_is_refused(pages: LivePages) -> None:
    watchers = [await Watcher.come(pages, "anna") for _ in range(MAX_STREAMS)]
    with pytest.raises(ConflictError, match="3 live pages"):
        await pages.take_seat(KEY, "anna")
    other = await Watcher.come(pages, "bert")
    await watchers[0].leave()
    again = await Watcher.come(pages, "anna")
    for each in (*watchers[1:], other, again):
        await each.leave()
    assert not pages._seats


async def test_closing_says_bye_to_all_at_once(pages: LivePages) -> None:
    watchers = [await Watcher.come(pages, f"browser {n}") for n in range(5)]
    for each in watchers:
        await each.event()
    waiting = [asyncio.ensure_future(each.event()) for each in watchers]
    await asyncio.sleep(0)
    pages.close()
    assert {name for name, _ in await asyncio.gather(*waiting)} == {"bye"}
    for each in watchers:
        with pytest.raises(StopAsyncIteration):
            await anext(each.events)


async def test_how_it_ended_is_told_before_the_good_bye(pages: LivePages, works: Works) -> None:
    watcher = await Watcher.come(pages)
    await watcher.event()
    waiting = asyncio.ensure_future(watcher.event())
    await asyncio.sleep(0)
    works.n += 1
    await pages.tick()
    pages.close()  # before the watcher has had its turn

    name, frame = await waiting

    assert name == "message"
    assert frame.keys() - {"seq", "at"}
    assert (await watcher.event())[0] == "bye"


async def test_a_page_that_is_no_more_ends_its_streams(pages: LivePages, works: Works) -> None:
    watcher = await Watcher.come(pages)
    await watcher.event()
    works.missing.add(KEY)
    await pages.tick()
    assert (await watcher.event())[0] == "bye"
    await watcher.leave()
    with pytest.raises(NotFoundError):
        await pages.take_seat(KEY, "a")


async def test_a_page_that_cannot_be_made_harms_no_other(
    pages: LivePages, works: Works, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = await Watcher.come(pages)
    await watcher.event()
    works.trouble = ValueError("no figures")
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            await pages.tick()
    assert len(caplog.records) == 1, "one line for one trouble, not one a second"
    works.trouble, works.n = None, 9
    await pages.tick()
    assert (await watcher.event())[1]["texts"]["head"] == "look 9"


async def test_who_asks_gets_what_changed_since(pages: LivePages, works: Works) -> None:
    sheet = counter_page(0)
    viewer = Viewer(sheet)
    viewer.apply(orjson.loads(await pages.poll(KEY, sheet.structure)))
    assert viewer.seq
    beat = orjson.loads(await pages.poll(KEY, sheet.structure, viewer.seq))
    assert beat.keys() == {"seq", "at"}
    for works.n in range(1, 4):
        await pages.tick()
    assert len(works.made) == 4, "who asks again and again is a viewer, and costs one sheet a tick"
    frame = orjson.loads(await pages.poll(KEY, sheet.structure, viewer.seq))
    viewer.apply(frame)
    assert viewer.shows(counter_page(3), with_lines=False)
    assert "structure" not in frame


@pytest.mark.parametrize("after", ["", "another-1", "-1", "boot-x", "9" * 400])
async def test_a_number_of_another_start_means_everything(pages: LivePages, after: str) -> None:
    frame = orjson.loads(await pages.poll(KEY, None, after))
    assert {"html", "structure"} <= frame.keys()


async def test_what_is_said_reaches_who_watches_that_page(pages: LivePages) -> None:
    pages.say(KEY, "nobody hears this")
    watcher = await Watcher.come(pages)
    await watcher.event()
    pages.say(OTHER, "nor this")
    pages.say(KEY, "B1 has stalled")
    await pages.tick()
    assert (await watcher.event())[1]["say"] == "B1 has stalled"
