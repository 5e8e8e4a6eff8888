"""Memory of a worker process with 100,000 prompts against 1,000: it follows what is in flight.

    python -m benchmarks.memory [--prompts 100000] [--prompt-bytes 2000]

A real worker process (`app worker`) works through a partition of 2 kB prompts, 64 in flight,
against an instant simulator in a process of its own; the first prompt's answer never comes. Read
is the peak resident memory (VmHWM) when all others are kept. Bars: from 1,000 to 100,000 prompts
it grows by less than 100 MB, and by less than 300 MB from a worker that has nothing to do (case
net-05); the first prompt is still running then. About a minute and a half, and 1 GB of disk.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from app.clock import SystemClock
from app.core.spec import ClassSpec, RunSpec, to_json
from app.core.types import PartitionId
from app.ledger import intake_rows, runs, servers, workers
from app.ledger.db import Ledger
from app.ledger.migrate import upgrade
from app.ledger.runs import NewPartition, NewRun
from benchmarks import homes
from tests.process.run_process import ROOT, SimulatorProcess

SMALL = 1_000
IN_FLIGHT = 64
ANSWER_TOKENS = 16
GROWTH_BAR_MB = 100
NET_05_BAR_MB = 300
PER_SAMPLE_BOUND_S = 0.02
FIRST = "@@slow"
SIMULATOR = ("--instant", "--incremental", "--no-log-requests", "--no-count-rows",
             "--fixed-tokens", str(ANSWER_TOKENS))  # fmt: skip


def prepare(home: Path, url: str, n: int, prompt_bytes: int) -> PartitionId:
    """Make a home with one partition of n tokenized prompts, the first of them marked."""
    home.mkdir(parents=True)
    upgrade(home / "ledger.db")
    ledger, now = Ledger(home / "ledger.db"), SystemClock().now()
    spec = RunSpec(
        name="memory", server_urls=(url,), prompts_dir="-", output_dir=str(home / "output"),
        classes={"c": ClassSpec(concurrency=IN_FLIGHT, max_new_tokens=ANSWER_TOKENS)},
    )  # fmt: skip
    new = NewRun(
        name=spec.name, spec_json=to_json(spec), output_dir=spec.output_dir, token_budget=None,
        fingerprint_json="{}", gen_id="g",
    )  # fmt: skip
    one = NewPartition(
        name="p", class_name="c", prompts_path="-", max_new_tokens=ANSWER_TOKENS,
        own_concurrency=None, token_budget=None, goal_samples=None,
    )  # fmt: skip
    try:
        servers.remember_server(ledger, url, "{}", now)
        run_id = runs.create_run(ledger, new, [one], now)
        partition_id = runs.partitions_of(ledger, run_id)[0].id
        for first in range(0, n, homes.PAGE):
            rows = [
                (k, k, 0, f"row{k}", "pending", "-", None, None, None)
                for k in range(first, min(n, first + homes.PAGE))
            ]
            intake_rows.insert_many(ledger, partition_id, rows)
        intake_rows.scanned(ledger, partition_id)
        if n:
            homes.tokenize_all(ledger, home, run_id, partition_id, prompt_bytes, first_text=FIRST)
    finally:
        ledger.close()
    (home / "output" / "p").mkdir(parents=True)
    return partition_id


@contextmanager
def worker_process(home: Path, partition_id: PartitionId, url: str) -> Iterator[int]:
    """Run the partition's worker as the service does; yield its pid."""
    ledger = Ledger(home / "ledger.db")
    worker_id = workers.register(ledger, partition_id, 600, SystemClock().now())
    (server,) = (view for view in servers.servers(ledger) if view.url == url)
    workers.set_shares(ledger, {worker_id: {server.id: IN_FLIGHT}})
    ledger.close()
    command = [sys.executable, "-m", "app", "worker", "--home", str(home)]
    command += ["--worker-id", str(worker_id), "--parent-pid", str(os.getpid())]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def peak_mb(folder: Path, url: str, n: int, prompt_bytes: int) -> float:
    """Let a worker work through all prompts but the first; return its peak."""
    home = folder / f"home-{n}"
    partition_id = prepare(home, url, n, prompt_bytes)
    ledger = Ledger(home / "ledger.db")
    deadline = time.monotonic() + 60 + PER_SAMPLE_BOUND_S * n
    try:
        with worker_process(home, partition_id, url) as pid:
            while not _is_through(ledger, partition_id, n):
                if time.monotonic() > deadline:
                    view = runs.get_partition(ledger, partition_id)
                    raise SystemExit(f"not through in time: {view.counts}")
                time.sleep(0.5)
            return _peak_mb(pid)
    finally:
        ledger.close()


def _is_through(ledger: Ledger, partition_id: PartitionId, n: int) -> bool:
    if n == 0:
        living = workers.living(ledger)
        return bool(living) and living[0].state == "working"
    counts = runs.get_partition(ledger, partition_id).counts
    if counts.kept == n - 1 and counts.running != 1:
        raise SystemExit(f"the slow first prompt is not running: {counts}")
    return counts.kept == n - 1


def _peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1000
    raise SystemExit("the kernel does not tell VmHWM")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=100_000)
    parser.add_argument("--prompt-bytes", type=int, default=2_000)
    options = parser.parse_args()
    simulator = SimulatorProcess(SIMULATOR)
    simulator.start()
    try:
        script = {FIRST: ["hang"], "*": ["ok"]}
        httpx.post(f"{simulator.url}/sim/script", json=script, trust_env=False).raise_for_status()
        peaks = {}
        with tempfile.TemporaryDirectory() as name:
            for n in (0, SMALL, options.prompts):
                began = time.monotonic()
                peaks[n] = peak_mb(Path(name), simulator.url, n, options.prompt_bytes)
                took_s = time.monotonic() - began
                print(f"{n:>8,} prompts: peak {peaks[n]:.0f} MB ({took_s:.0f} s)", flush=True)
    finally:
        simulator.kill()
    growth, from_nothing = peaks[options.prompts] - peaks[SMALL], peaks[options.prompts] - peaks[0]
    print(
        f"growth {growth:.0f} MB (bar: {GROWTH_BAR_MB}), from a worker with nothing to do"
        f" {from_nothing:.0f} MB (bar of net-05: {NET_05_BAR_MB})"
    )
    if growth >= GROWTH_BAR_MB or from_nothing >= NET_05_BAR_MB:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
