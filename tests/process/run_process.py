"""A whole run as real processes: a simulator, `longwatch run`, its workers. Killed by pid only.

Owns starting, killing and looking. What must hold at the end is in `accounts.py`.
"""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson

from app.core.states import RunState
from app.core.views import PartitionView, RunView
from app.ledger import runs, workers
from app.ledger.db import Ledger

ROOT = Path(__file__).resolve().parents[2]
BOUND_S = 150.0


def wait_for(holds: Callable[[], object], what: str, within_s: float = BOUND_S) -> None:
    """Return as soon as the condition holds; fail with `what` after the hang bound."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within_s:g} s for {what}")
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class SimulatorProcess:
    """The simulator as a process that can be killed and started again at the same address."""

    flags: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[str] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "app.simulator", "--port", str(self.port), *self.flags]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert "url" in json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None

    def counters(self) -> Mapping[str, int]:
        reply = httpx.get(f"{self.url}/sim/counters", trust_env=False, timeout=10)
        counters: Mapping[str, int] = reply.json()
        return counters


@dataclass
class RunProcess:
    """`longwatch run SPEC` in the foreground of a process of its own."""

    folder: Path
    server_url: str
    concurrency: int = 48
    max_new_tokens: int = 16_384
    spec_lines: str = ""
    run_lines: str = ""
    wrapper: tuple[str, ...] = ()
    has_pages: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.output = self.folder / "output"
        self.spec = self.folder / "spec.toml"
        self.write_spec()

    def write_spec(self) -> None:
        """Write what the fields ask for; again after one has changed."""
        self.spec.write_text(
            f"""[run]
name = "test"
server_urls = ["{self.server_url}"]
prompts_dir = "prompts"
output_dir = "output"
{self.run_lines}
[class.short]
concurrency = {self.concurrency}
max_new_tokens = {self.max_new_tokens}
[class.long]
concurrency = {self.concurrency}
max_new_tokens = {self.max_new_tokens}
{self.spec_lines}
"""
        )

    def write_prompts(self, partition: str, texts: list[str]) -> None:
        folder = self.folder / "prompts"
        folder.mkdir(exist_ok=True)
        lines = [
            orjson.dumps({"id": f"r{n}", "messages": [{"role": "user", "content": text}]})
            for n, text in enumerate(texts)
        ]
        (folder / f"{partition}.jsonl").write_bytes(b"\n".join(lines) + b"\n")

    def start(self, *flags: str, **more: Any) -> None:
        """Start it; `more` goes to Popen and wins over the log as its output."""
        command = [sys.executable, "-m", "app", "run", str(self.spec), "--home", str(self.home)]
        with (self.folder / "run.log").open("ab") as log:
            no_web = () if self.has_pages else ("--no-web",)
            self.process = subprocess.Popen(
                [*self.wrapper, *command, *no_web, "--port", "0", *flags],
                env={**os.environ, **self.environment},
                **{"cwd": ROOT, "stdout": log, "stderr": log, **more},
            )

    def is_alive(self) -> bool:
        """Return whether the parent lives."""
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Kill the parent only."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def order(self, *words: str) -> str:
        """Give an order by the command line, as an operator does; return what it said."""
        command = [sys.executable, "-m", "app", *words, "--home", str(self.home)]
        done = subprocess.run(
            command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, within_s: float = BOUND_S) -> int:
        assert self.process is not None
        try:
            return self.process.wait(within_s)
        finally:
            if self.process.returncode is not None:
                self.process = None

    def worker_pids(self) -> list[int]:
        """Return the pids of workers that live, by the ledger and by the kernel."""
        if not self.is_open():
            return []
        with self.ledger() as ledger:
            found = [view.pid for view in workers.living(ledger) if view.pid]
        return [pid for pid in found if is_worker(pid)]

    def kill_workers(self, n: int | None = None) -> int:
        pids = self.worker_pids()[:n]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(pids)

    def is_open(self) -> bool:
        """Return whether there is a ledger with a run. Looks without creating anything."""
        path = f"file:{self.home / 'ledger.db'}?mode=ro"
        try:
            with contextlib.closing(sqlite3.connect(path, uri=True)) as connection:
                return bool(connection.execute("SELECT count(*) FROM run").fetchone()[0])
        except sqlite3.OperationalError:
            return False

    @contextlib.contextmanager
    def ledger(self) -> Iterator[Ledger]:
        ledger = Ledger(self.home / "ledger.db")
        try:
            yield ledger
        finally:
            ledger.close()

    def run_view(self) -> RunView | None:
        if not self.is_open():
            return None
        with self.ledger() as ledger:
            return next(iter(runs.list_runs(ledger)), None)

    def partitions(self) -> list[PartitionView]:
        run = self.run_view()
        if run is None:
            return []
        with self.ledger() as ledger:
            return runs.partitions_of(ledger, run.id)

    def kept(self) -> int:
        return sum(each.counts.kept for each in self.partitions())

    def is_finished(self) -> bool:
        run = self.run_view()
        return run is not None and run.state is RunState.FINISHED

    def printed(self) -> str:
        """Return everything that was printed."""
        path = self.folder / "run.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def log_tail(self) -> str:
        """Return the end of what the run said and of what its processes logged."""
        paths = [self.folder / "run.log", *sorted((self.home / "logs").glob("*"))]
        found = [path for path in paths if path.exists()]
        return "\n".join(f"{p.name}: {p.read_text(errors='replace')[-3000:]}" for p in found)

    def close(self) -> None:
        """End everything that is left, by pid."""
        self.kill()
        self.kill_workers()


def is_worker(pid: int) -> bool:
    """Return whether the pid is (still) a worker of ours, not a stranger that got its number."""
    try:
        return b"worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
