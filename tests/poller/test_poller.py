"""Which servers are asked, when, for how long, and what a bad one can do to the others."""

import asyncio
import threading
from dataclasses import replace

import pytest
from sqlalchemy import text

from app.controls import find_run
from app.core.spec import to_json
from app.events import ServiceTrouble
from app.ledger import runs
from app.ledger.activity import Deed
from app.ledger.runs import NewRun
from tests.api.home import GEN_ID
from tests.poller.conftest import MakeDesk, StartServer
from tests.poller.desk import Desk
from tests.poller.traffic import Handler, answering, drip, listener, never_answer
from tests.waiting import die, wait_until


def add_run_with(desk: Desk, name: str, *urls: str) -> None:
    """Let another live run name these servers."""
    spec = replace(desk.home.spec(name), server_urls=urls)
    new = NewRun(
        name=name,
        spec_json=to_json(spec),
        output_dir=str(desk.home.output_dir),
        token_budget=None,
        fingerprint_json="{}",
        gen_id=GEN_ID,
    )
    runs.create_run(desk.home.ledger, new, [], desk.clock.now())


def end_run(desk: Desk) -> None:
    run = find_run(desk.home.ledger, "night")
    for event in ("stop", "workers gone"):
        deed = Deed(who="test", event=event, run_id=run.id)
        runs.move_run(desk.home.ledger, run.id, event, deed, desk.clock.now())


@pytest.mark.parametrize("bad", [never_answer, drip])
async def test_a_hung_server_delays_nobody(
    start_server: StartServer, make_desk: MakeDesk, bad: Handler
) -> None:
    server = start_server()
    desk = make_desk(server.url, poll_s=0.3)
    loop = asyncio.get_running_loop()
    async with listener(bad) as url:
        add_run_with(desk, "second", url)
        for _ in range(5):
            before, began = desk.poller.loads().get(server.url), loop.time()
            load = await desk.look()
            assert loop.time() - began < 1.5
            assert before is None or before.at is None or (load.at and load.at > before.at)
        await wait_until(lambda: desk.poller.loads()[url].away_since, "the hung one is away")
        assert load.running_requests == 0
        assert desk.poller.loads()[url].running_requests is None
        await desk.poller.close()


async def test_one_look_at_a_time(start_server: StartServer, make_desk: MakeDesk) -> None:
    server = start_server()
    desk = make_desk(server.url)

    await asyncio.gather(*(desk.poller.look() for _ in range(5)))

    assert server.stats.http_requests["/metrics"] == 1


async def test_a_late_look_is_not_doubled(make_desk: MakeDesk) -> None:
    came: list[int] = []

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(1)
        await never_answer(reader, writer)

    async with listener(count) as url:
        desk = make_desk(url, poll_s=0.1)
        for _ in range(4):
            await desk.look()
        assert len(came) == 1
        await desk.poller.close()


async def test_servers_are_followed_as_long_as_a_live_run_names_them(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server, second = start_server(), start_server()
    desk = make_desk(server.url)
    await desk.poller.look()
    assert set(desk.poller.loads()) == {server.url}

    add_run_with(desk, "second", second.url)
    await desk.poller.look()
    assert set(desk.poller.loads()) == {server.url, second.url}

    end_run(desk)
    await desk.poller.look()
    assert set(desk.poller.loads()) == {second.url}
    asked = server.stats.http_requests["/metrics"]
    await desk.poller.look()
    assert server.stats.http_requests["/metrics"] == asked


async def test_a_paused_run_is_still_looked_after(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    deed = Deed(who="test", event="run paused", run_id=desk.home.run_id)
    runs.move_run(desk.home.ledger, desk.home.run_id, "pause", deed, desk.clock.now())

    assert (await desk.look()).running_requests == 0


async def test_loads_are_a_copy_for_other_threads(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    seen: list[object] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.extend(load.url for load in desk.poller.loads().values())

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for _ in range(20):
            await desk.poller.look()
        await wait_until(lambda: seen, "the other thread has read")
    finally:
        stop.set()
        thread.join()
    loads = dict(desk.poller.loads())
    loads.clear()

    assert set(desk.poller.loads()) == {server.url}


async def test_after_the_end_nothing_is_asked(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    await desk.look()
    await desk.poller.close()
    asked = dict(server.stats.http_requests)

    await desk.poller.look()
    await desk.poller.close()

    assert server.stats.http_requests == asked
    assert desk.poller.loads() == {}


async def test_closing_in_the_midst_of_a_look_ends_it(make_desk: MakeDesk) -> None:
    async with listener(never_answer) as url:
        desk = make_desk(url, poll_s=30.0)
        look = asyncio.create_task(desk.poller.look())
        await wait_until(desk.poller.loads, "the look has begun")

        await desk.poller.close()
        await asyncio.wait_for(look, 1.0)

    assert desk.events == []


async def test_a_ledger_that_is_held_delays_entries_and_loses_none(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    await desk.look()
    await die(server)
    desk.home.ledger._engine.dispose()
    desk.home.ledger._busy_timeout_ms = 50
    with desk.home.ledger.write() as connection:
        connection.execute(text("SELECT 1"))
        await desk.look()
        await desk.look()
        assert desk.load.away_since is not None
    assert len(desk.events) == 1  # told once
    assert isinstance(desk.events[0], ServiceTrouble)
    assert "locked" in desk.events[0].reason
    assert desk.entries() == []

    await desk.look()

    assert desk.events_noted() == ["server lost"]


# ---- sec-06: nothing but the servers of the spec ----


async def test_sec_06_a_redirect_is_not_followed(make_desk: MakeDesk) -> None:
    reached: list[int] = []

    async def inner(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(1)
        await answering(b"HTTP/1.1 200 OK\r\n", b"sglang:num_running_reqs 9\n")(reader, writer)

    async with listener(inner) as forbidden:
        head = f"HTTP/1.1 302 Found\r\nLocation: {forbidden}/metrics\r\n".encode()
        async with listener(answering(head)) as url:
            load = await make_desk(url).look()

    assert reached == []
    assert load.running_requests is None
    assert "redirect (302), which is not followed" in load.trouble


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1:1", "http://", "x"])
async def test_sec_06_only_web_addresses_are_asked(make_desk: MakeDesk, url: str) -> None:
    desk = make_desk(url)

    await desk.poller.look()

    assert desk.poller.loads() == {}
    assert desk.events == []


async def test_sec_06_a_bad_answer_is_shown_only_in_short(make_desk: MakeDesk) -> None:
    body = b"root:x:0:0:\x1b[31m<script>" + b"secret " * 5_000
    async with listener(answering(b"HTTP/1.1 500 Oh\r\n", body)) as url:
        load = await make_desk(url).look()

    assert "/metrics answers 500" in load.trouble
    assert "\x1b" not in load.trouble
    assert len(load.trouble) < 160


async def test_sec_06_an_endless_answer_is_cut(make_desk: MakeDesk) -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n")
        while True:
            writer.write(b"#" * 1_000_000)
            await writer.drain()

    async with listener(pour) as url:
        load = await make_desk(url).look()

    assert load.running_requests is None
    assert "more than 8 MB" in load.trouble or "no answer within" in load.trouble


@pytest.mark.parametrize(
    "answer",
    [
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n",
        b"HTTP/1.1 99999 Odd\r\n",
    ],
)
async def test_an_answer_that_is_no_http_harms_nothing(make_desk: MakeDesk, answer: bytes) -> None:
    async with listener(answering(answer, b"\x00\xff sglang:num_running_reqs")) as url:
        desk = make_desk(url)
        load = await desk.look()

    assert load.running_requests is None
    assert load.trouble
    assert desk.events == []
