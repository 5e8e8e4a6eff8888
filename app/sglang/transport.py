"""How bytes travel to a server: sockets, connection pools, and what their errors mean.

Proxy variables are ignored, idle connections live 3 s (the server closes them after 5), and TCP
keep-alive finds a dead peer, since a queued request may rightly be silent for hours.
"""

import errno
import re
import socket

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

_KEEP_IDLE_S = 3.0
_ERRNO_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ETIMEDOUT: "timed out",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ENETUNREACH: "network unreachable",
    errno.ECONNRESET: "connection reset",
}


def make_transport() -> AiohttpTransport:
    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=_KEEP_IDLE_S, socket_factory=_socket
        )
        return aiohttp.ClientSession(connector=connector, trust_env=False)

    return AiohttpTransport(client=session, trust_env=False)


def _socket(address: tuple[object, ...]) -> socket.socket:
    """Return a socket whose dead peer is found within two minutes, however silent the stream."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)  # type: ignore[arg-type]  # getaddrinfo's shape
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def is_refusal(error: BaseException) -> bool:
    """Return whether no connection was made. The transport maps broken ones to the same class."""
    cause = error.__cause__ or error
    return isinstance(
        cause,
        aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | ConnectionRefusedError,
    )


def in_words(error: BaseException) -> str:
    """Return why a connection failed, plainly; the class only of what is not known here."""
    cause = error.__cause__ or error
    if isinstance(cause, aiohttp.ClientConnectorDNSError | socket.gaierror):
        return "the name is not known"
    if isinstance(cause, TimeoutError | httpx.TimeoutException):
        return "timed out"
    if isinstance(cause, aiohttp.ClientPayloadError):  # its own words name a status of nobody's
        return "broken off in the middle of the answer (ClientPayloadError)"
    number = getattr(cause, "errno", None)
    # several addresses of one name may be told together, and then only in words
    found = re.search(r"\[Errno (\d+)\]", str(cause)) if number is None else None
    known = _ERRNO_WORDS.get(int(found[1]) if found else number or 0)
    if known is not None:
        return known
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
