"""Folders with prompts below the roots that may be chosen from, as far as somebody looks through.

Owns the walk and its bounds. Invariants: nothing outside the roots is shown, whatever links lead
there; what cannot be read is told as a sentence, never raised.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import InputError
from app.files.prompts import ENDINGS, find_prompts, list_partitions

MOST_FOLDERS = 100
_MOST_LOOKED_AT = 1_000
_DEEPEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFile:
    """One partition's prompts. `kind` is how the file ends: jsonl, jsonl.gz, jsonl.zst, parquet."""

    partition: str
    path: Path
    kind: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFolder:
    """A folder that a run could read. `trouble` says why it could not."""

    path: Path
    files: tuple[PromptFile, ...] = ()
    trouble: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.files)


@dataclass(slots=True)
class Found:
    """`is_cut`: there may be more than was looked at."""

    folders: list[PromptFolder] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    is_cut: bool = False


def prompt_folders(roots: Sequence[Path]) -> Found:
    """Return the folders with prompts in and below the roots, each once, nearest first."""
    found = Found()
    reals = []
    for root in roots:
        try:
            reals.append(root.resolve(strict=True))
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a link to itself"
            found.troubles.append(f"{root} cannot be looked into: {reason}")
    seen: set[Path] = set()
    waiting = [(root, 0) for root in reals]
    while waiting:
        folder, depth = waiting.pop(0)
        if folder in seen:
            continue
        if len(seen) >= _MOST_LOOKED_AT or len(found.folders) >= MOST_FOLDERS:
            found.is_cut = True
            break
        seen.add(folder)
        one = look_into(folder)
        if one.files or one.trouble:
            found.folders.append(one)
        if depth < _DEEPEST:
            waiting += [(below, depth + 1) for below in _below(folder, reals)]
    return found


def look_into(folder: Path) -> PromptFolder:
    """Return the partitions of one folder; those of the prompts folder of a run."""
    try:
        names = list_partitions(folder)
        files = tuple(_file(name, find_prompts(folder, name)) for name in names)
    except InputError as error:
        return PromptFolder(path=folder, trouble=str(error))
    except OSError as error:  # it went away between two looks
        return PromptFolder(path=folder, trouble=f"cannot be read: {error.strerror}")
    return PromptFolder(path=folder, files=files)


def _file(partition: str, path: Path) -> PromptFile:
    kind = next(one for one in ENDINGS if path.name.endswith(one)).removeprefix(".")
    return PromptFile(partition=partition, path=path, kind=kind, size_bytes=path.stat().st_size)


def _below(folder: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Give the folders in a folder that are no partition and do not lead out of the roots."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or not os.path.isdir(entry):  # noqa: PTH112 - never raises
            continue
        if any((entry / f"prompts{ending}").is_file() for ending in ENDINGS):
            continue
        try:
            real = entry.resolve(strict=True)
        except (OSError, RuntimeError):
            continue
        if any(real.is_relative_to(root) for root in roots):
            yield real
