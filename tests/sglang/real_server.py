"""One real SGLang server as a process group: started, killed, ended and started again by a test.

Owns the process, its log, its temporary folder and its shared memory; knows nothing of HTTP beyond
the health check. Only the group that it started is ever signalled, and nothing of it is left.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

READY_BOUND_S = 240.0
END_BOUND_S = 60.0
RECIPE = Path(__file__).parent / "recipe"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the system keeps it
# A line of /proc/PID/maps; by inode, because a semaphore is mapped under another name than its own.
_MAPPED = re.compile(rf"(\d+)\s+{_SHARED_MEMORY}/")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class RealServer:
    """A server on one port of this machine; `start` after `kill9` uses the same port again."""

    def __init__(self, home: Path, log: Path, *, port: int | None = None) -> None:
        self.home = home
        self.log = log
        self.port = free_port() if port is None else port
        self.flags: tuple[str, ...] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch: Path | None = None
        self._shared: set[int] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id, which is the id of the group too."""
        assert self._process is not None, "the server is not started"
        return self._process.pid

    def start(self, *flags: str) -> None:
        """Start the process and return at once; see `wait_ready`."""
        assert self._process is None, "the server is already started"
        self.flags = flags
        # A short path: the server makes sockets in it, and their paths may not be long.
        self._scratch = Path(tempfile.mkdtemp(prefix="lw-"))
        command = [str(RECIPE / "serve.sh"), str(self.home), str(self.port), *flags]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(self._scratch)},
                start_new_session=True,
            )

    def wait_ready(self, bound_s: float = READY_BOUND_S) -> None:
        """Wait for /health to answer 200; fail with the end of the log."""
        self._wait(self._is_healthy, f"/health of {self.url} is 200", bound_s)
        self._shared |= _shared_memory_of(self.pid)

    def restart(self) -> None:
        """Start again on the same port with the same flags, killing first what still runs."""
        if self._process is not None:
            self.kill9()
        self.start(*self.flags)
        self.wait_ready()

    def kill9(self) -> None:
        """End the whole group at once, as a crash or an operator would."""
        self._end(signal.SIGKILL)

    def ask_to_end(self) -> None:
        """Send SIGTERM and return: the server serves what runs, and needs its clients to read."""
        os.kill(self.pid, signal.SIGTERM)

    def terminate(self) -> None:
        """End by SIGTERM and wait for it; with nothing running this takes up to 10 s."""
        self._end(signal.SIGTERM)

    def interrupt(self) -> None:
        """End by SIGINT: the quickest way in which the server itself still tidies up."""
        self._end(signal.SIGINT)

    def close(self) -> None:
        """Leave nothing, whatever the test did."""
        if self._process is not None:
            self.kill9()

    def log_tail(self, lines: int = 30) -> str:
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _end(self, number: signal.Signals) -> None:
        pid = self.pid
        self._shared |= _shared_memory_of(pid)
        if number is signal.SIGKILL:
            _signal_group(pid, number)
        else:
            os.kill(pid, number)
            self._wait(lambda: self._exit_code() is not None, f"pid {pid} ended", END_BOUND_S)
            # Children outlive their parent only when the shutdown itself went wrong.
            _signal_group(pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait(timeout=END_BOUND_S)
        self._process = None
        self._wait(lambda: not _living(pid), f"all of group {pid} ended", END_BOUND_S)
        self._wait(lambda: not self._is_listening(), f"port {self.port} is free", END_BOUND_S)
        _remove_shared_memory(self._shared)
        self._shared.clear()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _exit_code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def _is_healthy(self) -> bool:
        code = self._exit_code()
        assert code is None, f"the server exited with {code}; its log ends:\n{self.log_tail()}"
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=30) as answer:  # noqa: S310 - http on loopback
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _wait(self, condition: Callable[[], bool], what: str, bound_s: float) -> None:
        end = time.monotonic() + bound_s
        while not condition():
            if time.monotonic() > end:
                tail = self.log_tail()
                raise AssertionError(f"not seen within {bound_s:g} s: {what}; log ends:\n{tail}")
            time.sleep(0.1)


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _living(group: int) -> list[Path]:
    """Find the processes of a group in /proc which are more than a zombie."""
    found: list[Path] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        state, group_of_it = fields[0], int(fields[2])
        if group_of_it == group and state not in "ZX":
            found.append(process)
    return found


def _shared_memory_of(group: int) -> set[int]:
    """Find the inodes of a group's shared memory, which a killed server cannot take away itself."""
    found: set[int] = set()
    for process in _living(group):
        try:
            mapped = (process / "maps").read_text()
        except OSError:
            continue
        found |= {int(inode) for inode in _MAPPED.findall(mapped)}
    return found


def _remove_shared_memory(inodes: set[int]) -> None:
    for pattern in ("sglang_loads_*", "sem.mp-*"):
        for path in _SHARED_MEMORY.glob(pattern):
            with contextlib.suppress(FileNotFoundError):  # another server may take its own away
                if path.stat().st_ino in inodes:
                    path.unlink()
