"""A small client of the simulator, for its own tests.

Owns the way these tests talk to a server; every server here is real, on a real socket.
"""

import time
from collections.abc import Callable
from typing import Any

import httpx
import orjson
import pytest

from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import encode_chat

HANG_BOUND_S = 60.0


def ids_of(text: str) -> list[int]:
    return encode_chat([{"role": "user", "content": text}])


def wait_until(predicate: Callable[[], object], what: str) -> None:
    """Wait for a fact, up to the bound after which the test would count as hung."""
    end = time.monotonic() + HANG_BOUND_S
    while not predicate():
        if time.monotonic() > end:
            pytest.fail(f"waited {HANG_BOUND_S:.0f} s for {what}")
        time.sleep(0.005)


class Talk:
    """A client of one simulator."""

    def __init__(self, simulator: SimulatorThread) -> None:
        self.simulator = simulator
        self.http = httpx.Client(base_url=simulator.url, timeout=HANG_BOUND_S, trust_env=False)

    def body(self, text: str, *, stream: bool = False, **sampling: Any) -> dict[str, Any]:
        return {"input_ids": ids_of(text), "stream": stream, "sampling_params": sampling}

    def ask(self, text: str, **sampling: Any) -> httpx.Response:
        return self.http.post("/generate", json=self.body(text, **sampling))

    def events(self, body: dict[str, Any]) -> list[Any]:
        """Return the events of a stream, parsed; the terminator stays a string."""
        with self.http.stream("POST", "/generate", json=body) as response:
            assert response.status_code == 200
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            raw = b"".join(response.iter_bytes())
        return parse_events(raw)

    def cut_stream(self, body: dict[str, Any], on_first: Callable[[], None] | None = None) -> bytes:
        """Return what a stream brought before it broke; fail if it does not break."""
        raw = b""
        try:
            with self.http.stream("POST", "/generate", json=body) as response:
                for part in response.iter_raw():
                    if not raw and on_first is not None:
                        on_first()
                    raw += part
        except (httpx.ReadError, httpx.RemoteProtocolError):
            return raw
        pytest.fail(f"the stream ended properly: {raw[-200:]!r}")

    def stream(self, text: str, **sampling: Any) -> list[Any]:
        return self.events(self.body(text, stream=True, **sampling))


def parse_events(raw: bytes) -> list[Any]:
    parts = [part.removeprefix(b"data: ") for part in raw.split(b"\n\n") if part]
    return [part.decode() if part == b"[DONE]" else orjson.loads(part) for part in parts]
