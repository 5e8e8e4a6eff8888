"""Exchanges with a server in plain httpx: whole answers, streams, and waiting for a condition.

Owns how a test sends and reads; knows nothing of the product, so that a fault in the product's
own reader cannot hide a fault of a server. Never sends an id the server did not itself give out:
an id outside the vocabulary ends the real server's process.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

Json = dict[str, Any]

HANG_BOUND_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What the server under test says of itself."""

    url: str
    context_tokens: int
    incremental: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAnswer:
    """One stream read to its end: the bytes and the events in them."""

    raw: bytes
    events: tuple[Json, ...]
    done: bool

    def output_ids(self, *, incremental: bool) -> list[int]:
        return joined_ids(self.events, incremental=incremental)

    def completion_tokens(self) -> list[int]:
        return [event["meta_info"]["completion_tokens"] for event in self.events]


def open_client(url: str) -> httpx.Client:
    # A kept connection may be closed by the server just as it is used again, hence none is kept.
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=url, timeout=HANG_BOUND_S, limits=limits)


def request_body(input_ids: list[int], *, stream: bool = False, **sampling: Any) -> Json:
    params: Json = {"temperature": 0, "ignore_eos": True, **sampling}
    return {"input_ids": input_ids, "sampling_params": params, "stream": stream}


def generate(client: httpx.Client, input_ids: list[int], **sampling: Any) -> Json:
    response = client.post("/generate", json=request_body(input_ids, **sampling))
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return answer


def read_stream(client: httpx.Client, input_ids: list[int], **sampling: Any) -> StreamAnswer:
    response = client.post("/generate", json=request_body(input_ids, stream=True, **sampling))
    assert response.status_code == 200, response.text
    return parse_stream(response.content)


def parse_stream(raw: bytes) -> StreamAnswer:
    data = [frame.removeprefix(b"data: ") for frame in raw.split(b"\n\n") if frame]
    events = tuple(json.loads(frame) for frame in data if frame != b"[DONE]")
    return StreamAnswer(raw=raw, events=events, done=bool(data) and data[-1] == b"[DONE]")


@contextmanager
def live_stream(client: httpx.Client, body: Json) -> Iterator[Iterator[Json]]:
    """Yield the events one by one while the server makes them; leaving early hangs up."""
    with client.stream("POST", "/generate", json={**body, "stream": True}) as response:
        assert response.status_code == 200, response.status_code
        yield _events(response)


def _events(response: httpx.Response) -> Iterator[Json]:
    for line in response.iter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def joined_ids(events: tuple[Json, ...], *, incremental: bool) -> list[int]:
    if incremental:
        return [token for event in events for token in event["output_ids"]]
    last: list[int] = events[-1]["output_ids"]
    return last


def running_requests(client: httpx.Client) -> int:
    loads = client.get("/v1/loads").json()["loads"]
    return sum(load["num_running_reqs"] for load in loads)


def metric_sum(client: httpx.Client, name: str) -> float:
    """Add up all series of one metric, whatever their labels."""
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name}{{"))


def wait_until(condition: Callable[[], bool], what: str, *, bound_s: float = HANG_BOUND_S) -> None:
    end = time.monotonic() + bound_s
    while not condition():
        assert time.monotonic() < end, f"not seen within {bound_s:g} s: {what}"
        time.sleep(0.02)
