"""How much room a folder has, what kind of file system it is on, and storage errors that say so.

Owns the time limit on asking: a dead network mount hangs `statvfs` for minutes, and nothing that
asks here may hang with it (sto-03). Invariant: at most one unanswered question per folder.
"""

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from app.errors import StorageError

NETWORK_KINDS = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs",
        "fuse.juicefs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.weed", "gfs2", "glusterfs",
        "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs",
        "virtiofs", "wekafs",
    }
)  # fmt: skip

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_SPACE_TIMEOUT_S = 1.0
T = TypeVar("T")
_asking: dict[Path, threading.Thread] = {}


def free_bytes(path: Path, timeout_s: float) -> int | None:
    """Return what an ordinary user may still write there, None if unknown within the time."""

    def ask() -> int:
        facts = os.statvfs(path)
        return facts.f_bavail * facts.f_frsize

    return within(path, ask, timeout_s)


def within(path: Path, ask: Callable[[], T], timeout_s: float) -> T | None:
    """Return what `ask` says of a path, None if it fails or says nothing within the time.

    A question that hangs stays with its own thread; until it ends, the answer is None at once.
    """
    waiting = _asking.get(path)
    if waiting is not None and waiting.is_alive():
        return None
    answer: list[T] = []

    def asked() -> None:
        with suppress(OSError):
            answer.append(ask())

    thread = threading.Thread(target=asked, name="free-space", daemon=True)
    _asking[path] = thread
    thread.start()
    thread.join(timeout_s)
    if not thread.is_alive():
        _asking.pop(path, None)
    return answer[0] if answer else None


def storage_error(path: Path, doing: str, error: OSError, *, then: str = "resume") -> StorageError:
    """Return the error that names the path, what failed and, where it matters, the free space.

    `then`: what to do once the cause is mended.
    """
    reason = error.strerror or str(error)
    if error.errno not in _FULL:
        return StorageError(f"cannot {doing} {path}: {reason}", hint=f"mend the cause and {then}")
    free = free_bytes(path.parent, _SPACE_TIMEOUT_S)
    left = "free space unknown" if free is None else f"{free:,} bytes free"
    return StorageError(
        f"cannot {doing} {path}: {reason} ({left})", hint=f"free space there and {then}"
    )


def is_network_filesystem(path: Path) -> str | None:
    """Return the kind of network file system that holds the path, None for a local one."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = filesystem_kind(path.resolve(), mounts)
    return kind if kind in NETWORK_KINDS else None


def filesystem_kind(real_path: Path, mountinfo: str) -> str | None:
    """Return the kind of the mount that the path lies on; the last of equal depth is on top."""
    deepest, kind = -1, None
    for line in mountinfo.splitlines():
        mount, _, filesystem = line.partition(" - ")
        fields = mount.split(" ")
        point = Path(_unescaped(fields[4])) if len(fields) > 4 else None  # noqa: PLR2004 - proc(5)
        if point is None or not real_path.is_relative_to(point):
            continue
        if len(point.parts) >= deepest:
            deepest, kind = len(point.parts), filesystem.split(" ")[0]
    return kind


def _unescaped(text: str) -> str:
    for escape, plain in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        text = text.replace(escape, plain)
    return text
