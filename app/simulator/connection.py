"""One TCP connection: tells at once when the client leaves, and can be reset on order.

Owns the link between uvicorn's protocol and the request in it. Invariant: every request finds its
connection in the ASGI scope, and `on_lost` runs when it ends, also when the server itself cuts.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

SCOPE_KEY = "simulator.connection"
_CLOSING_S = 1.0
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: close sends RST


class Connection(HttpToolsProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        on_accept: Callable[[], None],
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.lost = False
        self.on_lost: Callable[[], None] | None = None
        self._on_accept = on_accept

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows it
        # The ignore is uvicorn's own: asyncio types the argument as BaseTransport.
        self._on_accept()
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost = True
        if self.on_lost is not None:
            self.on_lost()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[SCOPE_KEY] = self

    async def wait_lost(self, delay_s: float | None) -> bool:
        """Wait for the delay, the client's leaving, or a call of `on_lost`; return `lost`."""
        if self.lost:
            return True
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        timer = loop.call_later(delay_s, end) if delay_s is not None else None
        self.on_lost = end
        try:
            await over
        finally:
            self.on_lost = None
            if timer is not None:
                timer.cancel()
        return self.lost

    async def reset(self) -> None:
        """Close with RST, as a crashed peer does."""
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        self.transport.abort()
        await self.wait_lost(_CLOSING_S)

    async def drop(self) -> None:
        """Close without a terminator, after what was written."""
        self.transport.close()
        await self.wait_lost(_CLOSING_S)
