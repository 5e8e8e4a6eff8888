"""What looking on costs: workers and service without viewers and with a hundred of them.

    python -m benchmarks.viewers [--rounds 9] [--viewers 100]

A real service with eight partitions at work on a simulator process. In one run, spans without and
with viewers of `/runs/1/live` take turns, whichever is first changing; the viewers are one more
process, whose own time is not counted. Measured: processor time of all workers per token that the
simulator has sent, and of the service. Bar: the median ratio of the workers' is at most 1.15.
Printed too: bytes of a first frame and of later ones, and per viewer and second. Two minutes.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.process.run_process import RunProcess, SimulatorProcess, wait_for
from tests.process.serving import run_of, serving, submission
from tests.stage import random_texts
from tests.web.stream_reader import StreamReader

BAR = 1.15
SPAN_S, SETTLE_S = 4.0, 1.0
NAMES = tuple(f"B{n}_p" for n in range(1, 9))
IN_FLIGHT = 64  # of each class
SIMULATOR = ("--incremental", "--no-log-requests", "--no-count-rows", "--kv-tokens", "4000000",
             "--time-factor", "16", "--mean-tokens", "2000", "--cap-tokens", "8000")  # fmt: skip
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """What a span cost: processor time of the workers per token, of the service per second."""

    worker_us_per_token: float
    service_ratio: float
    tokens: int


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def span(run: RunProcess, simulator: SimulatorProcess, workers: list[int]) -> Spent:
    """Measure for a while; the workers must be the same ones at its end."""
    assert run.process is not None
    began_s = time.perf_counter()
    tokens = simulator.counters()["delivered_tokens"]
    worker_s, service_s = sum(map(cpu_s, workers)), cpu_s(run.process.pid)
    time.sleep(SPAN_S)
    worker_s, service_s = sum(map(cpu_s, workers)) - worker_s, cpu_s(run.process.pid) - service_s
    tokens = simulator.counters()["delivered_tokens"] - tokens
    if sorted(run.worker_pids()) != workers:
        raise SystemExit("a worker has ended in mid-measurement")
    return Spent(1e6 * worker_s / tokens, service_s / (time.perf_counter() - began_s), tokens)


class Audience:
    """The process of the viewers: they come and go by its standard input, and end with it."""

    def __init__(self, client: httpx.Client, n: int) -> None:
        page = f"{str(client.base_url).removesuffix('/api/v1/')}/runs/1"
        structure = re.search(r'data-structure="(\w+)"', client.get(page).text)
        assert structure is not None
        url = f"{page}/live?has={structure[1]}"  # as a browser does that has drawn the page
        token = client.headers["authorization"].split()[1]
        self.heard: list[dict[str, float]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.viewers", "--watch", url, "--viewers", str(n)],
            env={**os.environ, "VIEWERS_TOKEN": token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Let them all look on meanwhile; remember what they have heard."""
        if self._ask("come") != "all look on":
            raise SystemExit("the viewers could not look on")
        yield
        self.heard.append(json.loads(self._ask("go")))

    def _ask(self, word: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Heard:
    """Sizes of the frames that viewers have got."""

    def __init__(self) -> None:
        self.sizes: dict[int, list[int]] = {}

    def hear(self, number: int, _event: str, data: bytes) -> None:
        self.sizes.setdefault(number, []).append(len(data))

    def figures(self, passed_s: float) -> dict[str, float]:
        later = [size for sizes in self.sizes.values() for size in sizes[1:]]
        return {
            "first": statistics.median(sizes[0] for sizes in self.sizes.values()),
            "median": statistics.median(later),
            "most": max(later),
            "per_s": len(later) / len(self.sizes) / passed_s,
        }


async def watch(url: str, n: int) -> None:
    """Let n viewers come and go as the standard input says, until it ends."""
    while (await asyncio.to_thread(sys.stdin.readline)).strip() == "come":
        heard = Heard()
        token = os.environ["VIEWERS_TOKEN"]
        readers = [StreamReader(url, token, number, heard.hear) for number in range(n)]
        tasks = [asyncio.create_task(reader.look()) for reader in readers]
        while len(heard.sizes) < n:
            if any(task.done() for task in tasks):
                raise SystemExit("a viewer was refused")
            await asyncio.sleep(0.05)
        _reply("all look on")
        began_s, before = time.perf_counter(), sum(reader.n_bytes for reader in readers)
        await asyncio.to_thread(sys.stdin.readline)
        came = sum(reader.n_bytes for reader in readers) - before
        passed_s = time.perf_counter() - began_s
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        _reply(json.dumps(heard.figures(passed_s) | {"bytes_per_s": came / n / passed_s}))


def _reply(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def measure(
    folder: Path, rounds: int, n: int
) -> tuple[list[tuple[Spent, Spent]], list[dict[str, float]]]:
    """Return what each round cost without and with viewers, and what they heard."""
    simulator = SimulatorProcess(SIMULATOR)
    simulator.start()
    run = RunProcess(folder, simulator.url, concurrency=IN_FLIGHT, max_new_tokens=8_000)
    for name in NAMES:
        run.write_prompts(name, random_texts(2_000, seed=1))
    found = []
    try:
        with serving(run) as client:
            client.post("/runs", json=submission(run)).raise_for_status()
            wait_for(lambda: run_of(client)["in_flight_requests"] >= 2 * IN_FLIGHT, "all at work")
            workers = sorted(run.worker_pids())
            audience = Audience(client, n)
            try:
                for number in range(rounds):
                    spent: dict[bool, Spent] = {}
                    for is_watched in (False, True) if number % 2 == 0 else (True, False):
                        with audience.looking() if is_watched else nullcontext():
                            time.sleep(SETTLE_S)
                            spent[is_watched] = span(run, simulator, workers)
                    found.append((spent[False], spent[True]))
            finally:
                audience.close()
    finally:
        run.close()
        simulator.kill()
    return found, audience.heard


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--watch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watch:
        asyncio.run(watch(options.watch, options.viewers))
        return
    with tempfile.TemporaryDirectory() as name:
        rounds, heard = measure(Path(name), options.rounds, options.viewers)
    _tell(rounds, heard, options.viewers)


def _tell(rounds: list[tuple[Spent, Spent]], heard: list[dict[str, float]], n: int) -> None:
    ratios = [b.worker_us_per_token / a.worker_us_per_token for a, b in rounds]
    ratio, shown = statistics.median(ratios), ", ".join(f"{each:.2f}" for each in ratios)
    for place, label in ((0, "no viewers"), (1, f"{n} viewers")):
        spent = [pair[place] for pair in rounds]
        print(
            f"{label:12s} workers {statistics.median(s.worker_us_per_token for s in spent):6.1f} µs"
            f" per token, service {statistics.median(s.service_ratio for s in spent):5.1%} of a"
            f" core, {statistics.median(s.tokens for s in spent) / SPAN_S:,.0f} tokens a second"
        )
    print(f"workers per token, watched over not: {ratio:.2f} (bar: {BAR:g})   ({shown})")
    for key, about in (
        ("first", "bytes of a viewer's first frame"),
        ("median", "bytes of a later frame, median"),
        ("most", "bytes of a later frame, at most"),
        ("per_s", "frames per viewer and second"),
        ("bytes_per_s", "bytes per viewer and second"),
    ):
        print(f"{about:36s} {statistics.median(each[key] for each in heard):10,.2f}")
    if ratio > BAR:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
