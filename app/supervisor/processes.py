"""Worker processes: started with the home's lock in hand, watched by pid, reaped exactly once.

Owns Popen objects, never ledger rows. A process that is not in here is not ours to end.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.core.format import one_line, signal_name
from app.core.types import PartitionId, WorkerId

_TAIL_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A reaped worker. `code` is negative for a signal; `said` is its last line, if any."""

    worker_id: WorkerId
    partition_id: PartitionId
    code: int
    said: str = ""

    @property
    def in_words(self) -> str:
        if self.code < 0:
            return f"killed by {signal_name(-self.code)}"
        return f"exit code {self.code}" + (f" ({self.said})" if self.said else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Child:
    worker_id: WorkerId
    partition_id: PartitionId
    process: subprocess.Popen[bytes]
    output: Path


class Processes:
    """The living children of this service. `on_exit` is called soon after one ends."""

    def __init__(
        self, home: Path, lock_descriptor: int, watch: Callable[[int], None] | None = None
    ) -> None:
        self._home = home
        self._lock = lock_descriptor
        self._watch = watch
        self._children: dict[WorkerId, _Child] = {}
        self._environment = dict(os.environ)
        for output in (home / "logs").glob("worker-*.out"):
            _last_line(output)  # of workers that outlived an earlier service

    def start(self, worker_id: WorkerId, partition_id: PartitionId) -> int:
        """Start the worker's process; return its pid."""
        command = [sys.executable, "-m", "app", "worker"]
        command += ["--home", str(self._home), "--worker-id", str(worker_id)]
        command += ["--parent-pid", str(os.getpid())]
        output = self._home / "logs" / f"worker-{worker_id}.out"
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("ab") as sink:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                pass_fds=[self._lock],
                env=self._environment,
                process_group=0,  # a terminal's Ctrl-C and hang-up are the service's to handle
            )
        # A death that a test ordered happens once: successors are not armed.
        self._environment.pop("LONGWATCH_DIE_AT", None)
        self._children[worker_id] = _Child(
            worker_id=worker_id, partition_id=partition_id, process=process, output=output
        )
        if self._watch is not None:
            self._watch(process.pid)
        return process.pid

    def reap(self) -> list[Exit]:
        """Return the children that have ended since the last call."""
        exits = []
        for child in list(self._children.values()):
            code = child.process.poll()
            if code is not None:
                del self._children[child.worker_id]
                exits.append(
                    Exit(
                        worker_id=child.worker_id,
                        partition_id=child.partition_id,
                        code=code,
                        said=_last_line(child.output),
                    )
                )
        return exits

    def worker_of(self, partition_id: PartitionId) -> WorkerId | None:
        return next(
            (c.worker_id for c in self._children.values() if c.partition_id == partition_id), None
        )

    def living(self) -> dict[PartitionId, WorkerId]:
        return {child.partition_id: child.worker_id for child in self._children.values()}

    def signal(self, worker_id: WorkerId, number: signal.Signals) -> None:
        """Send a signal to a child that is ours and not reaped, by its pid."""
        child = self._children.get(worker_id)
        if child is not None and child.process.poll() is None:
            child.process.send_signal(number)


def _last_line(output: Path) -> str:
    """Return the last line that an ended worker wrote; the file goes if it is empty."""
    said = ""
    with suppress(OSError):
        lines = output.read_text(errors="replace")[-_TAIL_CHARS:].split("\n")
        said = next((line for line in reversed(lines) if line.strip()), "")
        if not said:
            output.unlink()
    return one_line(said)
