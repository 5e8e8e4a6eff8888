"""The server panel against the real server: its figures are the server's, and true."""

import asyncio
from pathlib import Path

import httpx
import pytest

from app.sglang.loads import read_loads
from app.sglang.metrics import read_metrics
from app.sglang.reading import Counter, Reading
from tests.api.home import Home
from tests.poller.desk import Desk
from tests.sglang.real_server import RealServer
from tests.waiting import wait_until

N_STREAMS = 4
BOUND_S = 120.0
CAPACITY = 20_000  # the recipe's --max-total-tokens


async def prompt_of(client: httpx.AsyncClient, text: str) -> list[int]:
    answer = await client.post("/tokenize", json={"prompt": text})
    ids: list[int] = answer.json()["tokens"]
    return ids


async def stream(client: httpx.AsyncClient, text: str, n_tokens: int) -> int:
    """Read one answer to its end; return how many tokens came."""
    sampling = {"temperature": 0, "ignore_eos": True, "max_new_tokens": n_tokens}
    body = {
        "input_ids": await prompt_of(client, text),
        "sampling_params": sampling,
        "stream": True,
    }
    n = 0
    async with client.stream("POST", "/generate", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                n = httpx.Response(200, content=line[6:]).json()["meta_info"]["completion_tokens"]
    return n


def answer_of(server: RealServer, path: str) -> httpx.Response:
    return httpx.get(f"{server.url}{path}", trust_env=False, timeout=30)


def decoded(server: RealServer) -> float:
    reading = read_metrics(answer_of(server, "/metrics").text)
    assert reading is not None
    return reading.counters[Counter.DECODED]


async def until_idle(desk: Desk) -> None:
    while (await desk.look()).running_requests != 0:
        await desk.clock.sleep(0.2)


@pytest.fixture
def desk(tmp_path: Path, real_server: RealServer) -> Desk:
    return Desk(Home(tmp_path / "home", server_url=real_server.url), poll_s=3.0)


async def test_the_panel_of_a_real_server_is_true(desk: Desk, real_server: RealServer) -> None:
    info = answer_of(real_server, "/server_info").json()
    async with httpx.AsyncClient(
        base_url=real_server.url, timeout=BOUND_S, trust_env=False
    ) as client:
        await stream(client, "warm the counters up", 8)
        await until_idle(desk)
        before = decoded(real_server)
        tasks = [
            asyncio.create_task(stream(client, f"{n} is the number of a request", 1_500))
            for n in range(N_STREAMS)
        ]
        async with asyncio.timeout(BOUND_S):
            while (await desk.look()).running_requests != N_STREAMS:
                await desk.clock.sleep(0.1)
        busy = await desk.look()
        received = await asyncio.gather(*tasks)
        await wait_until(
            lambda: decoded(real_server) >= before + sum(received) - N_STREAMS,
            "all tokens in the counter",
            within_s=BOUND_S,
        )
        grown = decoded(real_server) - before
        load = await desk.look()
    await desk.poller.close()

    assert busy.kv_capacity_tokens == info["max_total_num_tokens"] == CAPACITY
    assert busy.waiting_requests == 0
    assert busy.max_running_requests is not None
    assert busy.max_running_requests > 0
    assert busy.kv_used_tokens is not None
    assert busy.kv_reclaimable_tokens is not None
    assert busy.kv_free_tokens is not None
    assert busy.kv_used_tokens > 0
    assert busy.kv_used_tokens + busy.kv_reclaimable_tokens + busy.kv_free_tokens == CAPACITY
    assert busy.used_ratio == pytest.approx(busy.kv_used_tokens / CAPACITY, abs=0.01)
    assert busy.tokens_per_s is not None
    assert busy.tokens_per_s > 0
    assert busy.progressed_at is not None
    assert (busy.version, busy.model_path) == (info["version"], info["model_path"])
    assert busy.trouble == ""
    # The first token of each answer comes from its prefill, and is not counted as decoded.
    assert received == [1_500] * N_STREAMS
    assert grown == sum(received) - N_STREAMS
    assert load.n_first_tokens is not None
    assert load.n_first_tokens >= N_STREAMS
    assert load.first_token_p50_s is not None
    assert load.first_token_p99_s is not None
    assert 0 < load.first_token_p50_s <= load.first_token_p99_s
    assert load.retracted_requests == 0
    assert load.n_restarts == 0


async def test_prefix_hits_of_a_real_server_are_those_of_the_window(
    desk: Desk, real_server: RealServer
) -> None:
    text = "the same long beginning " * 20
    async with httpx.AsyncClient(
        base_url=real_server.url, timeout=BOUND_S, trust_env=False
    ) as client:
        await stream(client, text, 4)
        await desk.look()
        for _ in range(3):
            await stream(client, text, 4)
        load = await desk.look()
    await desk.poller.close()

    assert load.prefix_hit_ratio is not None
    assert load.prefix_hit_ratio > 0.9


async def test_the_loads_of_a_real_server_say_the_same(desk: Desk, real_server: RealServer) -> None:
    await until_idle(desk)

    def told() -> Reading | None:
        return read_loads(answer_of(real_server, "/v1/loads").content)

    reading, load = told(), await desk.look()
    async with asyncio.timeout(BOUND_S):  # an idle scheduler renews its gauges every 30 s
        while reading is not None and reading.kv_used_tokens != load.kv_used_tokens:
            await desk.clock.sleep(0.5)
            reading, load = told(), await desk.look()
    await desk.poller.close()

    assert reading is not None
    assert reading.running_requests == load.running_requests == 0
    assert reading.waiting_requests == load.waiting_requests == 0
    assert reading.kv_capacity_tokens == load.kv_capacity_tokens == CAPACITY
    assert reading.max_running_requests == load.max_running_requests
    assert reading.kv_used_tokens == load.kv_used_tokens
    assert reading.version == load.version
    assert reading.throughput_tokens_per_s is None or reading.throughput_tokens_per_s > 0


async def test_a_real_server_that_was_killed_is_seen_to_start_anew(
    tmp_path: Path, doomed_server: RealServer
) -> None:
    desk = Desk(Home(tmp_path / "home", server_url=doomed_server.url), poll_s=3.0)
    async with httpx.AsyncClient(
        base_url=doomed_server.url, timeout=BOUND_S, trust_env=False
    ) as client:
        await stream(client, "some work before the end", 400)
    last = await desk.look()
    await asyncio.to_thread(doomed_server.kill9)

    away = await desk.look()
    assert away.away_since is not None
    assert away.at == last.at
    await asyncio.to_thread(doomed_server.restart)
    back = await desk.look()
    while back.version is None:  # a scheduler that has just begun answers late
        back = await desk.look(ahead_s=11)
    again = await desk.look()
    await desk.poller.close()

    assert again.away_since is None
    assert again.n_restarts == 1
    assert again.started_at is not None
    assert again.tokens_per_s is not None
    assert again.tokens_per_s >= 0
    assert again.kv_capacity_tokens == CAPACITY
    assert desk.events_noted() == ["server lost", "server back"]
    assert "started anew" in desk.entries()[-1]
