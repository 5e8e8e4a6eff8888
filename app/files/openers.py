"""Which other programs have a file open, as far as this user may see it.

Owns the reading of /proc; opens nothing but its folders. Where there is no /proc, or a process
belongs to another user, nothing is known: an empty answer proves nothing.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_MOST = 3


def others_with(path: Path) -> tuple[str, ...]:
    """Return up to three programs that have the file open, none of this process's family."""
    found = []
    target = path.resolve()
    for pid in _processes():
        if pid != os.getpid() and _has_open(pid, target) and _parent(pid) != os.getpid():
            found.append(f"{_name(pid)} (process {pid})")
        if len(found) == _MOST:
            break
    return tuple(found)


def _processes() -> Iterator[int]:
    with suppress(OSError):
        for entry in _PROC.iterdir():
            if entry.name.isdigit():
                yield int(entry.name)


def _has_open(pid: int, target: Path) -> bool:
    with suppress(OSError):  # it is somebody else's, or has ended
        for descriptor in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                if descriptor.readlink() == target:
                    return True
    return False


def _parent(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _name(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "comm").read_text().strip() or "a program"
    except OSError:
        return "a program"
