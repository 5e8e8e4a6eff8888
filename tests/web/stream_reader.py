"""Viewers of a live page over plain sockets: as cheap as one can look on, so that many fit in.

Owns HTTP/1.1's chunks and the events in them. Each viewer is a browser of its own (its user agent):
a service gives one browser three streams. What is done with an event is its `hear`.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

Hear = Callable[[int, str, bytes], None]


class StreamReader:
    """One viewer. `n_bytes` counts all that came, headers of HTTP apart."""

    def __init__(self, url: str, token: str, number: int, hear: Hear) -> None:
        self._url = urlsplit(url)
        self._token = token
        self._number = number
        self._hear = hear
        self.n_bytes = 0

    async def look(self) -> None:
        """Look on until the stream ends or this is cancelled; raises OSError if it is refused."""
        host, port = self._url.hostname, self._url.port
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(self._request())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise OSError(f"viewer {self._number}: {head.decode(errors='replace')}")
            await self._read(reader)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _request(self) -> bytes:
        path = f"{self._url.path}?{self._url.query}" if self._url.query else self._url.path
        lines = (
            f"GET {path} HTTP/1.1",
            f"Host: {self._url.netloc}",
            f"Authorization: Bearer {self._token}",
            f"User-Agent: viewer-{self._number}",
            "Accept: text/event-stream",
            "Accept-Encoding: gzip",
        )
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        waiting = b""
        while size := int(await reader.readline() or b"0", 16):
            waiting += (await reader.readexactly(size + 2))[:-2]
            self.n_bytes += size
            *events, waiting = waiting.split(b"\n\n")
            for event in events:
                self._take(event)

    def _take(self, event: bytes) -> None:
        name, data = "message", b""
        for line in event.split(b"\n"):
            if line.startswith(b"event: "):
                name = line[7:].decode()
            elif line.startswith(b"data: "):
                data = line[6:]
        if data:
            self._hear(self._number, name, data)
