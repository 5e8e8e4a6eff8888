"""Case sec-06: addresses of inference servers, and what such a server can make us do.

A page cannot set an address: they come with a spec, from who has the token, and there is no list of
allowed ones to be told apart. So a name that resolves to something else later reaches nothing that
its author could not have written down at once; what remains is tested here.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.core.spec import to_json
from app.errors import LongwatchError
from app.sglang.client import ServerClient
from app.sglang.stream import Answer
from tests.gate.people import exchange, request
from tests.gate.standing import TOKEN, Standing

BEARER = f"Authorization: Bearer {TOKEN}"
INNER = "inner-service-answer "


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "gopher://127.0.0.1:25/",
     "http://user:secret@127.0.0.1:1", "http://", "127.0.0.1:22", "http://127.0.0.1:1?a=b"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/api/v1/runs", "/api/v1/runs/night/partitions"])
def test_sec_06_only_addresses_of_servers_are_taken(quiet: Standing, url: str, path: str) -> None:
    spec = json.loads(to_json(quiet.home.spec("second"))) | {"server_urls": [url]}
    raw = request(path, quiet.port, BEARER, "Content-Type: application/json",
                  method="POST", body=json.dumps({"spec": spec}))  # fmt: skip
    answer = exchange(quiet.port, raw)
    assert answer.status == 422
    assert "address" in answer.text or "more than host and port" in answer.text


@asynccontextmanager
async def answering(reply: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answer every request with these bytes; gives the port, and what was asked."""
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(reply)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


def plain(status: str, body: str, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
async def test_sec_06_a_server_cannot_send_us_elsewhere(status: str) -> None:
    async with answering(plain("200 OK", "{}")) as (inner, heard):
        redirect = plain(status, "", f"Location: http://127.0.0.1:{inner}/")
        async with (
            answering(redirect) as (outer, asked),
            ServerClient(f"http://127.0.0.1:{outer}") as client,
        ):
            end = await client.generate(b"{}", Answer(), 20.0)
            assert end.status == int(status.split(maxsplit=1)[0])
            assert await client.health() == int(status.split(maxsplit=1)[0])
            await client.facts()
            await client.abort("lw-1")
            assert await client.detokenize([1]) is None
            with pytest.raises(LongwatchError):
                await client.tokenize({"prompt": "a"})
        assert len(asked) >= 6
    assert heard == []


async def test_sec_06_what_a_server_says_is_cut() -> None:
    async with (
        answering(plain("500 Broken", INNER * 5_000)) as (port, _),
        ServerClient(f"http://127.0.0.1:{port}") as client,
    ):
        end = await client.generate(b"{}", Answer(), 20.0)
        assert INNER in end.message
        assert len(end.message) < 500
        with pytest.raises(LongwatchError) as told:
            await client.tokenize({"prompt": "a"})
        assert len(str(told.value)) < 700
