"""What the service answers, with a million samples in the ledger against a thousand.

    python -m benchmarks.big_ledger [--finished 1000000] [--rounds 30] [--path /runs/1 …]

Two homes are prepared as `benchmarks/startup.py` does it, each with 50 pending samples, and served
at the same time by a real `longwatch serve` with its worker at work. Each path is asked of both in
turn, whoever is first changing with each round: the API, the pages, a frame of the live page, and
`/metrics`; `--path` adds more. Bar: the median time of each path is at most 2 times that of the
small home. Three minutes, 2 GB, ends by itself.
"""

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx

from app.simulator.answers import LengthModel
from app.simulator.server import SimulatorThread
from benchmarks.startup import PARTITION, SMALL, prepare
from tests.process.run_process import wait_for
from tests.process.serving import run_of, serving

BAR = 2.0
LONGEST_S = 600.0
PROMPT_BYTES = 200
PAUSE_S = 0.01
_SAMPLES = f"/api/v1/runs/1/samples?partition={PARTITION}"
PATHS = (
    "/api/v1/runs",
    "/api/v1/runs/1",
    "/api/v1/runs/1/partitions",
    "/api/v1/runs/1/activity",
    "/api/v1/runs/1/servers",
    "/api/v1/runs/1/chart",
    "/api/v1/servers",
    "/api/v1/runs/1/samples/1",
    _SAMPLES,
    f"{_SAMPLES}&after=900",
    *(f"{_SAMPLES}&state={state}" for state in ("ok", "truncated", "failed", "running", "pending")),
    "/metrics",
    "/",
    "/runs/1",
    "/runs/1?range=all",
    "/runs/1/frame",
    f"/runs/1/p/{PARTITION}",
    f"/runs/1/p/{PARTITION}/frame",
    f"/api/v1/runs/1/partitions/{PARTITION}/measures",
    f"/runs/1/chart?partition={PARTITION}",
    "/runs/1/failures",
    "/runs/1/samples",
    *(f"/runs/1/samples?state={state}" for state in ("ok", "failed", "pending")),
    "/runs/1/samples?q=r9",
    "/runs/1/samples/1",
    "/runs/1/activity",
    "/runs/1/server",
    "/compare?a=1&b=1",
    "/new",
)


class Asked:
    """How long each path took each home, and in which order they are asked."""

    def __init__(self, clients: dict[int, httpx.Client], deadline_s: float) -> None:
        self._clients = clients
        self._deadline_s = deadline_s
        self.took_s: dict[tuple[str, int], list[float]] = defaultdict(list)

    def round(self, paths: Sequence[str], number: int, *, counts: bool = True) -> None:
        for path in paths:
            for n in sorted(self._clients, reverse=bool(number % 2)):
                seconds = self._ask(path, n)
                if counts:
                    self.took_s[path, n].append(seconds)
                time.sleep(PAUSE_S)  # so that one answer's end is not in the next one's time

    def _ask(self, path: str, n: int) -> float:
        if time.monotonic() > self._deadline_s:
            raise SystemExit(f"not done within {LONGEST_S:g} s")
        client = self._clients[n]
        url = str(client.base_url).removesuffix("/api/v1/") + path
        began = time.perf_counter()
        answer = client.get(url)
        took_s = time.perf_counter() - began
        if answer.status_code != 200:
            raise SystemExit(f"{path} of the home with {n:,}: {answer.status_code} {answer.text}")
        return took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--finished", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--path", action="append", default=[], help="one more path")
    options = parser.parse_args()
    paths = (*PATHS, *options.path)
    # Answers that do not end: nothing is finished by measuring.
    answers = LengthModel(fixed_tokens=8_000, cap_tokens=8_000)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        simulator = stack.enter_context(SimulatorThread(lengths=answers))
        clients = {}
        for n in (SMALL, options.finished):
            run = prepare(folder / str(n), simulator.url, n, PROMPT_BYTES)
            stack.callback(run.close)
            clients[n] = client = stack.enter_context(serving(run))
            wait_for(lambda c=client: run_of(c)["in_flight_requests"], "its worker at work", 60)
        asked = Asked(clients, time.monotonic() + LONGEST_S)
        asked.round(paths, 0, counts=False)  # once for nothing: page cache, first connections
        for number in range(options.rounds):
            asked.round(paths, number)
    kept = [_tell(path, asked, options.finished) for path in paths]
    if not all(kept):
        raise SystemExit(1)


def _tell(path: str, asked: Asked, finished: int) -> bool:
    """Print the figures of one path; return whether they keep the bar."""
    small, large = (statistics.median(asked.took_s[path, n]) for n in (SMALL, finished))
    ratio = large / small
    print(
        f"{ratio:5.2f} (bar: {BAR:g})  {1e3 * large:7.2f} ms against {1e3 * small:7.2f} ms  {path}"
    )
    return ratio <= BAR


if __name__ == "__main__":
    main()
