"""The digest of each prompt file, taken anew only where the file is not as it was then.

Owns how a file is recognised: device, inode, size, and the times of its last write and change. A
write within the last seconds could be followed by another that the times do not show, so such a
file is not remembered. Invariant: whatever changes a file, except through the raw disk, has it
read whole again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.errors import InputError
from app.files.prompt_ids import file_sha256

PROMPTS = "prompts@"
SIZE_IN_MARK = 2
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDigests:
    """Digests by partition; `seen` tells, as JSON can, the files that need not be read again."""

    digests: Mapping[str, str]
    seen: Mapping[str, list[int]]
    sizes: Mapping[str, int]


def prompt_digests(prompts: Mapping[str, Path], stored_json: str, now: datetime) -> PromptDigests:
    """Return the digests of the files; those that `stored_json` of the run knows are not read."""
    stored = json.loads(stored_json)
    known, seen = stored.get("fingerprint") or {}, stored.get("seen") or {}
    digests: dict[str, str] = {}
    marks: dict[str, list[int]] = {}
    sizes: dict[str, int] = {}
    for name, path in prompts.items():
        mark = file_mark(path)
        digest = known.get(f"{PROMPTS}{name}")
        if not isinstance(digest, str) or seen.get(name) != mark:
            digest = file_sha256(path)
        digests[name] = digest
        sizes[name] = mark[SIZE_IN_MARK]
        if file_mark(path) == mark and _is_settled(mark, now):
            marks[name] = mark
    return PromptDigests(digests=digests, seen=marks, sizes=sizes)


def file_mark(path: Path) -> list[int]:
    """Return what tells a file from itself after any change."""
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _is_settled(mark: list[int], now: datetime) -> bool:
    return max(mark[-2:]) <= int(now.timestamp()) * 1_000_000_000 - _SETTLED_NS
