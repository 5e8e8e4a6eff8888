"""Prompt files: where they lie, and their records one after another.

Owns finding, listing and scanning; the shapes of records are `prompt_records`. Invariants: only
the byte 0x0A ends a record (inp-01); every non-blank line is either a prompt or rejected with its
line number, so the totals add up; memory does not grow with the file.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from app.core.spec import partition_name_problem
from app.errors import InputError
from app.files.prompt_records import Prompt, Rejected, parse_line
from app.files.prompt_streams import unpacked

__all__ = ["Prompt", "Rejected", "find_prompts", "list_partitions", "same_files", "scan"]

Progress = Callable[[int, int], None]

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
MAX_LINE_BYTES = 64 << 20
PROGRESS_EVERY = 2_000
# What Longwatch itself writes beside or below the prompts when both folders are the same.
_OUTPUTS = frozenset({"responses", "rejected", "failed"})
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def find_prompts(prompts_dir: Path, partition: str) -> Path:
    """Return the prompt file of a partition; InputError lists what was looked for."""
    if problem := partition_name_problem(partition):
        raise InputError(problem)
    choices = [prompts_dir / partition / f"prompts{ending}" for ending in ENDINGS]
    choices += [prompts_dir / f"{partition}{ending}" for ending in ENDINGS]
    found = [path for path in choices if path.is_file()]
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(map(str, found))
        raise InputError(
            f"partition {partition} has more than one prompt file: {names}",
            hint=f"remove the others, or name one: [partition.{partition}] prompts = ...",
        )
    looked_for = ", ".join(str(path.relative_to(prompts_dir)) for path in choices)
    raise InputError(
        f"partition {partition} has no prompt file in {prompts_dir}",
        hint=f"looked for {looked_for}",
    )


def list_partitions(prompts_dir: Path) -> list[str]:
    """Return the partitions that have a prompt file, sorted; InputError for an unusable name."""
    try:
        entries = sorted(prompts_dir.iterdir())
    except OSError as error:
        raise InputError(
            f"cannot list the prompts folder {prompts_dir}: {error.strerror}",
            hint="check prompts_dir",
        ) from error
    names = {name for entry in entries if (name := _partition_of(entry))}
    problems = [problem for name in sorted(names) if (problem := partition_name_problem(name))]
    if problems:
        raise InputError(f"{prompts_dir}: {'; '.join(problems)}", hint="rename or move it")
    return sorted(names)


def _partition_of(entry: Path) -> str | None:
    if entry.name.startswith("."):
        return None
    if entry.is_dir():
        has_prompts = any((entry / f"prompts{ending}").is_file() for ending in ENDINGS)
        return entry.name if has_prompts else None
    ending = next((one for one in ENDINGS if entry.name.endswith(one)), None)
    name = entry.name.removesuffix(ending) if ending else ""
    is_output = name in _OUTPUTS or name.startswith("responses-")
    return name if name and not is_output and entry.is_file() else None


def same_files(prompts: Mapping[str, Path]) -> list[str]:
    """Return a sentence for each partition whose prompt file another one already reads (inp-13).

    Compared is the file itself, so a symlink or a path with `..` is found out.
    """
    first: dict[tuple[int, int], str] = {}
    repeated = []
    for partition, path in prompts.items():
        facts = path.stat()
        owner = first.setdefault((facts.st_dev, facts.st_ino), partition)
        if owner != partition:
            repeated.append(
                f"partition {partition} reads {path}, which is the prompt file of {owner} already"
            )
    return repeated


def scan(path: Path, *, on_progress: Progress | None = None) -> Iterator[Prompt | Rejected]:
    """Yield every record of a prompt file; InputError if the file cannot be read to its end.

    `on_progress` is told bytes read and bytes in all, of the file as it lies on the disk.
    """
    if path.suffix == ".parquet":
        from app.files.prompt_parquet import scan_parquet  # noqa: PLC0415 - an optional extra

        yield from scan_parquet(path, on_progress)
        return
    with unpacked(path) as (lines, raw):
        size_bytes = path.stat().st_size
        index = 0
        for line_number, line in enumerate(lines_of(lines), start=1):
            if len(line) >= MAX_LINE_BYTES and not line.endswith(b"\n"):
                yield Rejected(index, line_number, None, rest_of_too_long(lines))
            elif line.isspace():
                continue
            else:
                yield parse_line(line, index, line_number)
            index += 1
            if on_progress and index % PROGRESS_EVERY == 0:
                on_progress(raw.tell(), size_bytes)
        if on_progress:
            on_progress(size_bytes, size_bytes)


def lines_of(lines: BinaryIO) -> Iterator[bytes]:
    """Return the lines without a byte order mark; one beyond the limit comes as its beginning."""
    first = lines.readline(MAX_LINE_BYTES).removeprefix(_BYTE_ORDER_MARK)
    return chain([first] if first else [], iter(partial(lines.readline, MAX_LINE_BYTES), b""))


def rest_of_too_long(lines: BinaryIO) -> str:
    """Read a line beyond the limit to its end; return the reason why it is not taken."""
    while (more := lines.readline(MAX_LINE_BYTES)) and not more.endswith(b"\n"):
        pass
    return f"the line is longer than {MAX_LINE_BYTES >> 20} MB"
