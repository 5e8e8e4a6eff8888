"""Named points between two effects at which a test lets the process die.

Owns the names and the trigger, nothing else. A seam is a line `seam(Seam.X)` directly before or
after a write, fsync, rename or commit; unarmed it costs one truth test. `arm("x:3")` makes the
third pass of seam x kill the process with SIGKILL, as a power cut would. Only the command line
arms it (from a setting), so that production code cannot.
"""

import os
import signal
from enum import StrEnum


class Seam(StrEnum):
    SHARD_BEFORE_WRITE = "shard-before-write"
    SHARD_WRITTEN = "shard-written"
    SHARD_SYNCED = "shard-synced"
    SHARD_CUT = "shard-cut"
    SETTLE_BEFORE_COMMIT = "settle-before-commit"
    SETTLE_COMMITTED = "settle-committed"
    CLAIM_BEFORE_COMMIT = "claim-before-commit"
    CLAIM_COMMITTED = "claim-committed"
    EXTEND_LIMIT_COMMITTED = "extend-limit-committed"
    EXTEND_BEFORE_COMMIT = "extend-before-commit"
    EXTEND_COMMITTED = "extend-committed"
    ADOPT_BEFORE_COMMIT = "adopt-before-commit"
    ADOPT_COMMITTED = "adopt-committed"
    INTAKE_BATCH_COMMITTED = "intake-batch-committed"
    INTAKE_SCANNED = "intake-scanned"
    TOKENS_WRITTEN = "tokens-written"
    TOKENS_SYNCED = "tokens-synced"
    TOKENS_COMMITTED = "tokens-committed"
    TURNS_REJECTED = "turns-rejected"
    SEAL_WRITTEN = "seal-written"
    SEAL_SYNCED = "seal-synced"
    SEAL_RENAMED = "seal-renamed"
    SEAL_COMMITTED = "seal-committed"
    SEAL_SHARDS_REMOVED = "seal-shards-removed"
    MANIFEST_WRITTEN = "manifest-written"
    MANIFEST_RENAMED = "manifest-renamed"
    RECOVERY_REWRITTEN = "recovery-rewritten"
    RECOVERY_RENAMED = "recovery-renamed"
    RECOVERY_COMMITTED = "recovery-committed"


_armed: dict[str, int] = {}


def arm(order: str) -> None:
    """Arm one seam: `name:n` dies at the n-th pass. ValueError for an unknown name."""
    name, _, count = order.partition(":")
    _armed.clear()
    _armed[Seam(name)] = int(count or "1")


def seam(name: Seam) -> None:
    """Die here if armed and due."""
    if not _armed or name not in _armed:
        return
    _armed[name] -= 1
    if _armed[name] <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
