"""The home folder's lock: one service owns one home.

A `flock` held by living processes, not a mere file: the descriptor is handed to the workers, so
the kernel frees it when the last of them is gone, with no bookkeeping of pids. The content (pid,
host, since, address) is for people and for finding the service; only the flock decides.
"""

import fcntl
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from app.clock import Clock, iso
from app.errors import ConflictError

ORPHAN_WAIT_S = 10.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who says that it owns the home. `address` is empty until the service listens."""

    pid: int
    host: str
    since: str
    address: str = ""


class HomeLock:
    """A held lock. `descriptor` may be inherited by workers."""

    def __init__(self, path: Path, descriptor: int, holder: Holder) -> None:
        self.path = path
        self.descriptor = descriptor
        self.holder = holder
        self._write()

    def announce(self, address: str) -> None:
        """Write where the service listens."""
        self.holder = Holder(**{**asdict(self.holder), "address": address})
        self._write()

    def _write(self) -> None:
        content = json.dumps(asdict(self.holder)).encode() + b"\n"
        os.pwrite(self.descriptor, content, 0)
        os.ftruncate(self.descriptor, len(content))

    def release(self) -> None:
        """Let go; workers that still hold the descriptor keep the home locked."""
        os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)


async def acquire(home: Path, clock: Clock) -> HomeLock:
    """Take the home's lock.

    Raises ConflictError at once while the service that holds it lives; after its death waits up
    to ten seconds for its workers to leave.
    """
    path = home / "service.lock"
    descriptor = _open(path, os.O_CREAT)
    deadline = clock.monotonic() + ORPHAN_WAIT_S
    while not _try(descriptor):
        holder = holder_of(home)
        if holder is not None and _is_alive(holder):
            os.close(descriptor)
            raise _refusal(home, holder)
        if clock.monotonic() > deadline:
            os.close(descriptor)
            raise ConflictError(
                f"workers of a service that died still use {home}",
                hint="They leave by themselves within seconds; if not, end them by their pid "
                "(`longwatch status` names them)",
            )
        await clock.sleep(_POLL_S)
    holder = Holder(pid=os.getpid(), host=socket.gethostname(), since=iso(clock.now()))
    return HomeLock(path, descriptor, holder)


def _open(path: Path, flags: int = 0) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    except OSError as error:
        raise ConflictError(
            f"cannot open {path}: {error.strerror}",
            hint="Run as the user whose home it is, or give another --home",
        ) from error


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _refusal(home: Path, holder: Holder) -> ConflictError:
    where = f" at {holder.address}" if holder.address else ""
    return ConflictError(
        f"{home} is in use by process {holder.pid} on {holder.host} since {holder.since}{where}",
        hint="Use that service, stop it, or give another --home",
    )


def _is_alive(holder: Holder) -> bool:
    if holder.host != socket.gethostname():
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(holder.pid)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def holder_of(home: Path) -> Holder | None:
    """Return who the lock file names, None if nobody. It may be dead."""
    try:
        content = (home / "service.lock").read_text()
        return Holder(**json.loads(content)) if content.strip() else None
    except (OSError, ValueError, TypeError):
        return None


def living_service(home: Path) -> Holder | None:
    """Return the service that owns the home now, None if there is none."""
    path = home / "service.lock"
    if not path.exists():
        return None
    descriptor = _open(path)
    try:
        if _try(descriptor):
            return None
    finally:
        os.close(descriptor)
    holder = holder_of(home)
    return holder if holder is not None and _is_alive(holder) else None
