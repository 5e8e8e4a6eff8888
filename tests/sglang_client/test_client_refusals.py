"""What a server says instead of an answer: busy, an error, nothing in time, or no protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.core.types import EndKind
from app.sglang.client import ServerClient
from app.simulator.server import SimulatorThread
from tests.sglang_client.asking import ask


@asynccontextmanager
async def server_that_says(content: bytes) -> AsyncIterator[str]:
    """Serve these bytes to whoever sends anything, then close."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(content)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", EndKind.CUT),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", EndKind.CUT),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", EndKind.CUT),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", EndKind.CUT),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", EndKind.BROKEN),
        (b"HTTP/1.1 307 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", EndKind.ERROR),
        (b"HTTP/1.1 204 None\r\n\r\n", EndKind.ERROR),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi",
            EndKind.BROKEN,
        ),
    ],
)
async def test_a_server_that_does_not_speak_the_protocol_raises_nothing(
    content: bytes, kind: EndKind
) -> None:
    async with server_that_says(content) as url, ServerClient(url) as client:
        end = await ask(client, timeout_s=20)

    assert end.kind is kind


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "retry_after_s"),
    [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None)],
)
async def test_srv_17_a_full_queue_is_busy_and_says_how_long(
    simulator: SimulatorThread,
    client: ServerClient,
    status: int,
    header: str,
    retry_after_s: float | None,
) -> None:
    full = {"json": [status, {"object": "error", "message": "The request queue is full."}]}
    simulator.script({"*": [full | {"headers": {"Retry-After": header}}]})

    end = await ask(client)

    assert (end.kind, end.status, end.retry_after_s) == (EndKind.BUSY, status, retry_after_s)
    assert "The request queue is full." in end.message


async def test_busy_without_a_time_is_busy(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    simulator.script({"*": [{"json": [503, {}]}]})

    end = await ask(client)

    assert (end.kind, end.retry_after_s) == (EndKind.BUSY, None)


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (400, {"error": {"message": "top_p must be in (0, 1]"}}, "top_p must be"),
        (400, {"error": "unknown field `foo`"}, "unknown field"),
        (400, {"object": "error", "message": "1 validation error"}, "1 validation error"),
        (500, {"detail": "cannot encode number"}, "cannot encode number"),
        (404, {"detail": "Not Found"}, "Not Found"),
        (500, "Internal Server Error", "Internal Server Error"),
    ],
)
async def test_an_error_has_its_status_and_the_servers_words(
    simulator: SimulatorThread,
    client: ServerClient,
    status: int,
    answer: object,
    words: str,
) -> None:
    simulator.script({"*": [{"json": [status, answer]}]})

    end = await ask(client)

    assert (end.kind, end.status) == (EndKind.ERROR, status)
    assert end.message.startswith(words)  # the status stands beside them, and is said once


async def test_an_error_that_echoes_the_whole_prompt_is_shortened(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    simulator.script({"*": [{"json": [400, {"error": "x" * 300_000}]}]})

    assert len((await ask(client)).message) < 1000


async def test_no_end_within_the_time_is_a_timeout_with_the_figure(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    simulator.script({"*": [{"hang_after": 3}]})

    end = await ask(client, timeout_s=0.5)

    assert (end.kind, len(end.ids)) == (EndKind.TIMEOUT, 3)
    assert end.message == "no end within request_timeout_s = 0.5 s"
