"""What durability costs: CPU of a worker against a bare loop that keeps nothing.

    python -m benchmarks.worker_cost [--rounds 3]

The bare loop streams over httpx with the aiohttp transport, parses each event with orjson and
drops the ids. The worker claims from a ledger, accumulates, checkpoints, writes shards, syncs and
settles. Each sample is its own process on core 0, the mock server on core 1; rounds interleave;
printed are medians and the ratios of each round. Bars: 1.6 for each line.
"""

import argparse
import asyncio
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import aiohttp
import httpx
import orjson
import uvloop
from httpx_aiohttp import AiohttpTransport

from benchmarks.mock_server import mock
from tests.stage import Stage

PROMPT_TOKENS = 128
# name: (kind, requests, in flight, tokens per answer)
SAMPLES = {
    "bare, 64 tokens, 150 in flight": ("bare", 12_000, 150, 64),
    "worker, 64 tokens, 150 in flight": ("worker", 12_000, 150, 64),
    "worker, 64 tokens, 2000 in flight": ("worker", 24_000, 2_000, 64),
    "bare, 4096 tokens, 150 in flight": ("bare", 2_000, 150, 4096),
    "worker, 4096 tokens, 150 in flight": ("worker", 2_000, 150, 4096),
}
RATIOS = [
    ("durable per request", "worker, 64 tokens, 150 in flight", "bare, 64 tokens, 150 in flight"),
    ("2000 in flight", "worker, 64 tokens, 2000 in flight", "worker, 64 tokens, 150 in flight"),
    ("per token", "worker, 4096 tokens, 150 in flight", "bare, 4096 tokens, 150 in flight"),
]
BAR = 1.6


def cpu_s() -> float:
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


async def bare(url: str, n: int, in_flight: int, tokens: int) -> float:
    def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), trust_env=False)

    client = httpx.AsyncClient(
        transport=AiohttpTransport(client=session),
        timeout=None,  # noqa: S113 - as the worker's own
    )
    body = orjson.dumps(
        {
            "rid": "x",
            "input_ids": list(range(10, 10 + PROMPT_TOKENS)),
            "sampling_params": {"max_new_tokens": tokens, "stream_interval": 64},
            "stream": True,
        }
    )
    left = n

    async def slot() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            async with client.stream("POST", f"{url}/generate", content=body) as response:
                buffer = b""
                async for chunk in response.aiter_raw():
                    buffer += chunk
                    *events, buffer = buffer.split(b"\n\n")
                    for event in events:
                        if event != b"data: [DONE]":
                            orjson.loads(event[6:])

    before = cpu_s()
    await asyncio.gather(*(slot() for _ in range(in_flight)))
    await client.aclose()
    return cpu_s() - before


async def worker(url: str, n: int, in_flight: int, tokens: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), url, concurrency=in_flight, max_new_tokens=tokens)
        stage.plan_changes = {"tick_s": 0.5}
        stage.fill_raw(n, PROMPT_TOKENS)
        before = cpu_s()
        async with stage.shift() as shift:
            while not shift.task.done() and not stage.partition().is_over:  # noqa: ASYNC110 - rows
                await asyncio.sleep(0.25)  # rarely: looking is not what is measured
        spent = cpu_s() - before
        if stage.partition().counts.kept != n:
            raise SystemExit(f"not all kept: {stage.partition().counts}")
        return spent


def one(name: str, url: str) -> None:
    kind, n, in_flight, tokens = SAMPLES[name]
    spent = uvloop.run({"bare": bare, "worker": worker}[kind](url, n, in_flight, tokens))
    print(json.dumps({"cpu_ms_per_request": 1000 * spent / n}))


def measure(name: str) -> float:
    tokens = SAMPLES[name][3]
    pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    # Pacing keeps the asked number in flight: the mock alone would answer faster than any client.
    pace = ["-l", "150"] if tokens == 64 else ["-i", "20"]
    with mock("-n", str(tokens), "-c", "64" if tokens > 64 else "32", *pace) as url:
        command = [*pin, sys.executable, "-m", "benchmarks.worker_cost", "--one", name]
        done = subprocess.run(
            [*command, "--url", url],
            check=False,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    return float(json.loads(done.stdout.splitlines()[-1])["cpu_ms_per_request"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one")
    parser.add_argument("--url")
    options = parser.parse_args()
    if options.one:
        one(options.one, options.url)
        return
    rounds = [{name: measure(name) for name in SAMPLES} for _ in range(options.rounds)]
    print(f"{'CPU ms per request':40s} median of {options.rounds}   min … max")
    for name in SAMPLES:
        values = [each[name] for each in rounds]
        median, spread = statistics.median(values), f"{min(values):.3f} … {max(values):.3f}"
        print(f"  {name:38s} {median:8.3f}   {spread}")
    missed = False
    for label, above, below in RATIOS:
        ratios = [each[above] / each[below] for each in rounds]
        median, shown = statistics.median(ratios), ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"  {label:38s} {median:8.2f} of at most {BAR}   ({shown})")
        missed |= median > BAR
    if missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
