"""The routes over a real socket: headers, frames, seats given back, a stop with streams open."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx
import orjson
import pytest
import uvicorn
from fastapi import FastAPI

from app.api.error_forms import ErrorForms
from app.api.listening import QuietServer
from app.clock import SystemClock
from app.web.kinds import PageKey, PageKind
from app.web.live import MAX_STREAMS, LivePages
from app.web.sheet import Sheet
from app.web.streaming import live_routes
from tests.waiting import wait_until
from tests.web.sketches import counter_page, draw


def no_sheet(_key: PageKey) -> Sheet | None:
    """Stand where a kind's own sheets are not asked for: the stand makes them all."""
    raise AssertionError


RUNS = PageKind(
    name="runs", path="/", key=lambda _: ("runs",), address=lambda _: "/", sheet=no_sheet
)
RUN = PageKind(
    name="run",
    path="/runs/{run}",
    key=lambda request: (
        "run",
        int(request.path_params["run"].replace("x", "0")),
        request.query_params.get("range", "15m"),
    ),
    address=lambda key: f"/runs/{key[1]}?range={key[2]}",
    sheet=no_sheet,
)


@dataclass
class Stand:
    pages: LivePages
    server: QuietServer
    serving: "asyncio.Task[None]"
    client: httpx.AsyncClient
    looks: list[PageKey]


@asynccontextmanager
async def standing() -> AsyncIterator[Stand]:
    looks: list[PageKey] = []

    def make(key: PageKey) -> Sheet | None:
        looks.append(key)
        return counter_page(len(looks)) if key[0] == "runs" or key[1] == 1 else None

    pages = LivePages(make, SystemClock(), draw)
    app = FastAPI()
    app.include_router(live_routes(pages, (RUNS, RUN)))
    ErrorForms(None, with_cdn=False).attach(app)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = QuietServer(uvicorn.Config(app, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=20) as client:
        yield Stand(pages, server, serving, client, looks)
    pages.close()
    server.should_exit = True
    await serving


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with standing() as made:
        yield made


async def lines_of(answer: httpx.Response, n: int) -> list[str]:
    """Return the first `n` lines of a stream that say something."""
    lines: list[str] = []
    async for line in answer.aiter_lines():
        if line:
            lines.append(line)
        if len(lines) == n:
            break
    return lines


async def test_ui_01_a_stream_is_sent_so_that_proxies_let_it_through(stand: Stand) -> None:
    async with stand.client.stream("GET", "/runs/1/live?range=1h") as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-accel-buffering"] == "no"
        retry, number, data = await lines_of(answer, 3)
    assert retry == "retry: 1000"
    frame = orjson.loads(data.removeprefix("data: "))
    assert number == f"id: {frame['seq']}"
    assert "html" in frame
    assert stand.looks == [("run", 1, "1h")]


async def test_a_reader_goes_on_from_where_it_was(stand: Stand) -> None:
    async with stand.client.stream("GET", "/runs/live") as answer:
        frame = orjson.loads((await lines_of(answer, 3))[2].removeprefix("data: "))
        await stand.pages.tick()
        after = {"last-event-id": frame["seq"]}
        async with stand.client.stream("GET", "/runs/live", headers=after) as again:
            more = orjson.loads((await lines_of(again, 3))[2].removeprefix("data: "))
    assert "html" not in more
    assert more["texts"]["head"] == "look 2"


async def test_a_seat_is_free_again_when_the_reader_has_gone(stand: Stand) -> None:
    for _ in range(MAX_STREAMS + 2):
        async with stand.client.stream("GET", "/runs/live") as answer:
            await lines_of(answer, 1)
        await wait_until(lambda: stand.pages.n_viewers == 0, "the seat to be given back")
    assert not stand.pages._seats


async def test_ui_02_the_fourth_page_of_one_browser_is_told_to_ask_instead(stand: Stand) -> None:
    def as_browser(session: str) -> dict[str, str]:
        return {"cookie": f"other=1; longwatch_8400={session}"}

    async with AsyncExitStack() as stack:
        held = []  # an iterator that is let go closes its connection
        for _ in range(MAX_STREAMS):
            stream = stand.client.stream("GET", "/runs/live", headers=as_browser("anna"))
            held.append((await stack.enter_async_context(stream)).aiter_lines())
            await anext(held[-1])
        refused = await stand.client.get("/runs/live", headers=as_browser("anna"))
        assert refused.status_code == 409
        assert "3 live pages" in refused.json()["error"]["message"]
        polled = await stand.client.get("/runs/frame", headers=as_browser("anna"))
        assert polled.json()["html"]
        async with stand.client.stream("GET", "/runs/live", headers=as_browser("bert")) as answer:
            assert answer.status_code == 200


async def test_who_polls_gets_the_same_frames_and_a_beat_if_nothing_is_new(stand: Stand) -> None:
    answer = await stand.client.get("/runs/1/frame?has=unknown")
    assert answer.headers["cache-control"] == "no-store"
    frame = answer.json()
    again = await stand.client.get(f"/runs/1/frame?after={frame['seq']}&has={frame['structure']}")
    assert again.json() == {"seq": frame["seq"], "at": frame["at"]}
    await stand.pages.tick()
    moved = await stand.client.get(f"/runs/1/frame?after={frame['seq']}&has={frame['structure']}")
    assert moved.json()["texts"]["head"] == "look 2"


@pytest.mark.parametrize("path", ["/runs/2/live", "/runs/2/frame", "/runs/x/live"])
async def test_there_is_no_stream_of_a_page_that_is_none(stand: Stand, path: str) -> None:
    assert (await stand.client.get(path)).status_code == 404


async def test_a_stop_with_open_streams_takes_less_than_two_seconds() -> None:
    async with standing() as stand:
        loop = asyncio.get_running_loop()
        ends: list[list[str]] = []

        async def watch() -> None:
            headers = {"cookie": f"longwatch_1={len(ends)}{id(asyncio.current_task())}"}
            async with stand.client.stream("GET", "/runs/1/live", headers=headers) as answer:
                ends.append([line async for line in answer.aiter_lines() if line][-2:])

        watchers = [asyncio.create_task(watch()) for _ in range(10)]
        await wait_until(lambda: stand.pages.n_viewers == 10, "ten streams")
        began = loop.time()
        stand.pages.close()
        stand.server.should_exit = True
        await stand.serving
        assert loop.time() - began < 2
        await asyncio.gather(*watchers)
        assert ends == [["event: bye", "data: {}"]] * 10


async def test_no_stream_begins_while_the_service_leaves(stand: Stand) -> None:
    stand.pages.close()
    for path in ("/runs/live", "/runs/1/frame"):
        answer = await stand.client.get(path)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"


async def test_a_reader_that_reads_nothing_holds_a_bounded_amount(stand: Stand) -> None:
    """Its frames are skipped, and the others are served as before."""
    port = stand.client.base_url.port
    assert port is not None
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(lazy, ("127.0.0.1", port))
        await loop.sock_sendall(
            lazy, b"GET /runs/live HTTP/1.1\r\nHost: a\r\nUser-Agent: l\r\n\r\n"
        )
        await wait_until(lambda: stand.pages.n_viewers == 1, "the lazy reader")
        for _ in range(200):
            await stand.pages.tick()
        async with stand.client.stream("GET", "/runs/live") as answer:
            frame = orjson.loads((await lines_of(answer, 3))[2].removeprefix("data: "))
        assert frame["texts" if "texts" in frame else "html"]
        page = stand.pages._pages["runs",]
        assert len(page.encoded) <= 3
    await wait_until(lambda: stand.pages.n_viewers == 0, "the lazy reader's seat")
