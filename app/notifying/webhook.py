"""A message as one POST to an address that the operator has set.

Owns the connection from the name to the status line. Invariants: every address that the name has is
judged before one of them is connected to, and it is that one, not the name, that is connected to;
no redirect is followed, no proxy used; of the answer only status and `Retry-After` are read, at
most a few kilobytes; path and query, which are as good as a password, are in no message.
"""

import asyncio
import errno
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from urllib.parse import urlsplit

import httpx
import orjson

from app.core.messages import Message, to_json
from app.notifying.addresses import Allowed, refusal

LIMIT_S = 10.0
_MAX_HEAD_BYTES = 8_192
_MAX_INTERIM = 3
_PORTS = {"http": 80, "https": 443}
_ERRNO_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.EPIPE: "connection reset",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ENETUNREACH: "network unreachable",
    errno.ETIMEDOUT: "timed out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of a try: in words, and how long the receiver wants to be left alone."""

    is_ok: bool
    said: str
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Webhook:
    """The one address. `name` is what of it may be shown."""

    url: str = field(repr=False)
    allowed: Allowed
    limit_s: float = LIMIT_S

    @property
    def kind(self) -> str:
        return "webhook"

    @property
    def name(self) -> str:
        return f"webhook {urlsplit(self.url).netloc}"

    async def send(self, message: Message) -> Reply:
        """Send it; never raises but for a cancellation."""
        try:
            async with asyncio.timeout(self.limit_s):
                return await self._send(orjson.dumps(to_json(message)))
        except TimeoutError:
            return Reply(is_ok=False, said=f"no answer within {self.limit_s:g} s")
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
            return Reply(is_ok=False, said=_in_words(error))

    async def _send(self, body: bytes) -> Reply:
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        addresses = await _resolved(host, port)
        for address in addresses:
            why = refusal(host, address, self.allowed)
            if why is not None:
                return Reply(is_ok=False, said=f"refused: {why}; LONGWATCH_NOTIFY_ALLOW may allow")
        context = _trust() if parts.scheme == "https" else None
        reader, writer = await _connected(addresses, port, host, context)
        try:
            path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
            writer.write(_head(path, parts.netloc, len(body)) + body)
            await writer.drain()
            return await _reply(reader)
        finally:
            writer.transport.abort()  # what else it has to say is nobody's


def _in_words(error: Exception) -> str:
    """Return why there was no answer. Never the error's own text: it may hold the address."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not valid: {error.verify_message}"
        case ssl.SSLError():
            return "no encrypted connection could be made"
        case socket.gaierror():
            return "the name is not known"
        case OSError():
            return _ERRNO_WORDS.get(error.errno or 0, "the connection failed")
    return "the answer is not HTTP"


async def _resolved(host: str, port: int) -> list[str]:
    """Return the addresses of a name, asked for in a thread of its own.

    Name servers may be silent for half a minute: no other thread waits for that, nor does the end.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Sequence[tuple[object, ...]]] = loop.create_future()

    def tell(found: Sequence[tuple[object, ...]] | OSError) -> None:
        if future.done():
            return
        if isinstance(found, OSError):
            future.set_exception(found)
        else:
            future.set_result(found)

    def ask() -> None:
        found: Sequence[tuple[object, ...]] | OSError
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError:
            found = socket.gaierror(socket.EAI_NONAME, "no name")
        except OSError as error:
            found = error
        with suppress(RuntimeError):  # the loop may have ended meanwhile
            loop.call_soon_threadsafe(tell, found)

    threading.Thread(target=ask, name="resolver", daemon=True).start()
    return list(dict.fromkeys(str(each[4][0]) for each in await future))  # type: ignore[index]  # getaddrinfo's shape


async def _connected(
    addresses: Sequence[str], port: int, host: str, context: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first of the addresses that takes it; the name serves the certificate only."""
    failed: OSError = socket.gaierror(socket.EAI_NONAME, "no address")
    for address in addresses:
        try:
            return await asyncio.open_connection(
                address,
                port,
                ssl=context,
                server_hostname=host if context else None,
                limit=_MAX_HEAD_BYTES,
            )
        except OSError as error:
            failed = error
    raise failed


@cache
def _trust() -> ssl.SSLContext:
    """Return what certificates are held against: the known authorities, and the system's own."""
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


def _head(path: str, netloc: str, n_bytes: int) -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        f"Host: {netloc}",
        f"User-Agent: longwatch/{version('longwatch')}",
        "Content-Type: application/json",
        f"Content-Length: {n_bytes}",
        "Accept: */*",
        "Connection: close",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


async def _reply(reader: asyncio.StreamReader) -> Reply:
    """Read the head of the answer. EOFError, LimitOverrunError, ValueError: it is no HTTP."""
    for _ in range(_MAX_INTERIM):
        raw = await reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").split("\r\n")
        version_word, _, rest = first.partition(" ")
        status = int(rest[:3])
        if not version_word.startswith("HTTP/1.") or not 100 <= status <= 599:  # noqa: PLR2004 - HTTP
            raise ValueError(first)
        if status >= HTTPStatus.OK:
            headers = dict(line.lower().partition(":")[::2] for line in lines if ":" in line)
            return _judged(status, headers)
    raise ValueError("no final answer")


def _judged(status: int, headers: Mapping[str, str]) -> Reply:
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return Reply(is_ok=True, said=f"HTTP {status}")
    if status < HTTPStatus.BAD_REQUEST:
        return Reply(is_ok=False, said=f"HTTP {status}, a redirect; those are not followed")
    asked_s = None
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        asked_s = _retry_after_s(headers)
    return Reply(is_ok=False, said=f"HTTP {status}", retry_after_s=asked_s)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return what `Retry-After` asks for: seconds, or a moment by the receiver's own clock."""
    given = headers.get("retry-after", "").strip()
    if given.isascii() and given.isdigit():
        return float(given[:9])
    try:
        until = parsedate_to_datetime(given)
        here = headers.get("date", "").strip()
        now = parsedate_to_datetime(here)
    except ValueError:
        return None
    return max(0.0, (_aware(until) - _aware(now)).total_seconds())


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
