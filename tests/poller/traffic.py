"""Requests in flight on a server, and servers that behave badly, on real sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx

from app.simulator.server import SimulatorThread
from tests.waiting import wait_until

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def in_flight(
    simulator: SimulatorThread, n: int, *, max_new_tokens: int = 20_000
) -> AsyncIterator[None]:
    """Keep `n` streams running or waiting on the server."""
    async with httpx.AsyncClient(base_url=simulator.url, timeout=60) as client:
        tasks = [asyncio.create_task(_stream(client, k, max_new_tokens)) for k in range(n)]
        await wait_until(lambda: simulator.stats.in_flight >= n, "requests in flight")
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _stream(client: httpx.AsyncClient, number: int, max_new_tokens: int) -> None:
    prompt = {"prompt": f"user:request {number} @@len={max_new_tokens}\nassistant:"}
    tokens = (await client.post("/tokenize", json=prompt)).json()["tokens"]
    sampling = {"max_new_tokens": max_new_tokens, "ignore_eos": True, "stream_interval": 64}
    body = {"input_ids": tokens, "sampling_params": sampling, "stream": True}
    async with client.stream("POST", "/generate", json=body) as response:
        async for _ in response.aiter_raw():
            pass


async def more_tokens(simulator: SimulatorThread) -> None:
    """Wait until the server has made some more."""
    before = simulator.ask(lambda machine: machine.figures.decode_tokens)
    await wait_until(
        lambda: simulator.ask(lambda machine: machine.figures.decode_tokens) > before, "more tokens"
    )


async def ask(simulator: SimulatorThread, *, max_new_tokens: int = 40) -> None:
    """Have one request answered to its end."""
    async with httpx.AsyncClient(base_url=simulator.url, timeout=30) as client:
        await _stream(client, 0, max_new_tokens)


@contextlib.asynccontextmanager
async def listener(handle: Handler) -> AsyncIterator[str]:
    """Serve a bad server's behaviour; yields its address."""
    tasks: set[asyncio.Task[None]] = set()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await handle(reader, writer)
        writer.close()

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def never_answer(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read(-1)


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Begin an answer and send a byte of its body now and then, for ever."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"#")
        await writer.drain()
        await asyncio.sleep(0.05)


def answering(head: bytes, body: bytes = b"") -> Handler:
    """Answer everything with the same bytes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        writer.write(head + length + body)
        await writer.drain()

    return answer
