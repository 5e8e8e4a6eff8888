"""How bytes leave the server: plain bodies, server-sent events, and the ends of both.

Owns status, headers and framing; what is said comes from elsewhere.
Shape of 0.5.23: one event per chunk, `data: {json}` and an empty line, then `data: [DONE]`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import orjson

Send = Callable[[dict[str, Any]], Awaitable[None]]
JSON_HEADER = (b"content-type", b"application/json")
_STREAM_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8")]
_DONE = b"data: [DONE]\n\n"


async def send_body(
    send: Send,
    status: int,
    body: bytes,
    headers: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send(
        {"type": "http.response.start", "status": status, "headers": [length, *headers]},
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_json(
    send: Send, status: int, body: object, headers: Mapping[str, str] | None = None
) -> None:
    extra = [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
    await send_body(send, status, orjson.dumps(body), [JSON_HEADER, *extra])


async def start_stream(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})


async def send_event(send: Send, event: bytes) -> None:
    body = b"data: %b\n\n" % event
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def send_done(send: Send) -> None:
    await send({"type": "http.response.body", "body": _DONE, "more_body": True})
    await end_stream(send)


async def end_stream(send: Send) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": False})
