"""A run as the failure cases write it: rows whose first word is their id, and what became of them.

Owns the small words of `test_cases_*`: rows in, states, lines, log and calls out. Starting, killing
and waiting are `run_process`. Ticks are short, so that a test waits for events and not for ticks.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
from sqlalchemy import text

from app.ledger import activity, runs
from app.ledger.lock import living_service
from app.simulator.server import SimulatorThread
from tests import books
from tests.cases.settings import calls
from tests.process.run_process import ROOT, RunProcess, wait_for

PARTITION = "B1_p"
SHORT_TICK = {"LONGWATCH_TICK_S": "0.1"}
# A case's test ends within 15 s; whatever takes longer than this hangs.
HANG_S = 90.0


@dataclass
class CaseRun(RunProcess):
    """One run, mostly of one partition."""

    concurrency: int = 8
    max_new_tokens: int = 400
    environment: Mapping[str, str] = field(default_factory=lambda: dict(SHORT_TICK))

    def write_rows(self, rows: Sequence[str], partition: str = PARTITION) -> None:
        folder = self.folder / "prompts"
        folder.mkdir(exist_ok=True)
        lines = [
            orjson.dumps(
                {"id": row.split(" ", 1)[0], "messages": [{"role": "user", "content": row}]}
            )
            for row in rows
        ]
        (folder / f"{partition}.jsonl").write_bytes(b"\n".join(lines) + b"\n")

    def to_the_end(self, *flags: str) -> int:
        self.start(*flags)
        return self.wait(HANG_S)

    @contextmanager
    def beside(self, *flags: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Start the spec as it is now once more, beside the service that lives on the home."""
        service, self.process = self.process, None
        self.start(*flags)
        follower, self.process = self.process, service
        assert follower is not None
        try:
            yield follower
        finally:
            follower.kill()
            follower.wait()

    def ask(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run any command of ours on this home, whatever comes of it."""
        command = [*self.wrapper, sys.executable, "-m", "app", *words, "--home", str(self.home)]
        return subprocess.run(
            command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S
        )

    def figures(self, run_id: int = 1, timeout_s: float = 10.0) -> dict[str, Any]:
        """Ask the living service for a run's figures, as a page does."""
        holder = living_service(self.home)
        assert holder is not None
        token = (self.home / "token").read_text().strip()
        answer = httpx.get(
            f"{holder.address}/api/v1/runs/{run_id}",
            headers={"authorization": f"Bearer {token}"},
            trust_env=False,
            timeout=timeout_s,
        )
        assert answer.status_code == 200, answer.text
        value: dict[str, Any] = answer.json()
        return value

    # -- what has come of it ------------------------------------------------------------------

    def samples(self, partition: str = PARTITION) -> dict[str, Mapping[str, Any]]:
        """Return the ledger's rows by their id."""
        (found,) = [each for each in self.partitions() if each.name == partition]
        with self.ledger() as ledger:
            return books.rows(ledger, found.id)

    def states(self, partition: str = PARTITION) -> dict[str, str]:
        return {key: str(row["state"]) for key, row in self.samples(partition).items()}

    def lines(self, partition: str = PARTITION) -> list[dict[str, Any]]:
        return books.lines(self.output / partition)

    def log(self) -> str:
        """Return everything that stands in the logs of the home."""
        return "".join(
            path.read_text() for path in sorted((self.home / "logs").iterdir()) if path.is_file()
        )

    def deeds(self) -> list[activity.Activity]:
        run = self.run_view()
        assert run is not None
        with self.ledger() as ledger:
            return activity.latest(ledger, run.id)

    def n_runs(self) -> int:
        if not self.is_open():
            return 0
        with self.ledger() as ledger:
            return len(runs.list_runs(ledger))

    def wait_kept(self, n: int) -> None:
        wait_for(lambda: self.kept() >= n, f"{n} answers", HANG_S)

    def wait_told(self, n: int) -> None:
        """Wait until the ledger has so many messages as sent.

        Heard is not yet recorded: killed in between, a message comes once more, with the same id.
        """

        def n_sent() -> int:
            with self.ledger() as ledger, ledger.read() as connection:
                sent = text("SELECT count(*) FROM delivery WHERE state = 'sent'")
                return int(connection.execute(sent).scalar_one())

        wait_for(lambda: n_sent() >= n, f"{n} messages to be recorded as sent", HANG_S)

    def kill_all(self) -> None:
        """Kill service and workers, as when the machine goes down."""
        self.kill()
        self.kill_workers()
        wait_for(lambda: not self.worker_pids(), "the dead to be gone", HANG_S)

    def assert_whole(self, rows: Sequence[str], partition: str = PARTITION) -> None:
        """Check that the sealed output holds each row once, in input order, and nothing else."""
        folder = self.output / partition
        content = (folder / "responses.jsonl").read_bytes()
        assert content.endswith(b"\n")
        keys = [orjson.loads(line)["id"] for line in content.splitlines()]
        assert keys == [row.split(" ", 1)[0] for row in rows]
        assert sorted(each.name for each in folder.glob("responses-*")) == []
        books.assert_each_once(self.samples(partition), self.lines(partition))


def calls_since(simulator: SimulatorThread, before: Mapping[str, int]) -> dict[str, int]:
    """Return how often each row was sent since, rows that were not left out."""
    now = calls(simulator)
    return {key: n - before.get(key, 0) for key, n in now.items() if n > before.get(key, 0)}
