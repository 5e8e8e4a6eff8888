"""Which files of an earlier script's folder hold answers of which partition, and whether they may.

Owns the names that are looked for, and what a partition must be like for its samples to be taken
over: all prompts read, nobody at work on it. Changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.states import RunState
from app.core.views import PartitionView, RunView
from app.errors import ConflictError, InputError
from app.ledger import runs, shards, workers
from app.ledger.db import Ledger

NAMES = ("raw_responses.jsonl", "responses.jsonl")
_PACKED = ("", ".gz", ".zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A partition and the file that holds what was made of it."""

    partition: PartitionView
    path: Path


def sources_of(
    ledger: Ledger, run: RunView, folder: Path, named: Mapping[str, str]
) -> list[Source]:
    """Return what there is to take over, in the order of the run.

    `named`: files given by partition, in the folder or anywhere; with any, no other is looked for.
    InputError where there is no such folder, file or partition, or nothing at all.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder", hint="name the earlier script's output folder")
    partitions = runs.partitions_of(ledger, run.id)
    known = [each.name for each in partitions]
    for name in named:
        if name not in known:
            raise InputError(
                f"run {run.id} has no partition {name}", hint=f"It has {', '.join(known)}"
            )
    found = []
    for partition in partitions:
        path = (
            _given(folder, partition.name, named.get(partition.name))
            if named
            else _looked_for(folder, partition.name, _own_files(ledger, partition))
        )
        if path is not None:
            found.append(Source(partition=partition, path=path))
    if not found:
        raise InputError(
            f"{folder} holds no answers of {', '.join(known)}",
            hint=f"they are looked for as PARTITION/{NAMES[0]} or PARTITION.jsonl; name others with"
            " --partition NAME=FILE",
        )
    return found


def _given(folder: Path, name: str, given: str | None) -> Path | None:
    if given is None:
        return None
    found = next((each for each in (Path(given), folder / given) if each.is_file()), None)
    if found is None:
        raise InputError(
            f"--partition {name}={given}: there is no such file, in {folder} neither",
            hint="check the path",
        )
    return found


def _looked_for(folder: Path, name: str, own: Sequence[Path]) -> Path | None:
    return next(
        (
            path
            for path in _candidates(folder, name)
            if path.is_file() and path.resolve() not in own
        ),
        None,
    )


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    for base in (*(folder / name / each for each in NAMES), folder / f"{name}.jsonl"):
        for packed in _PACKED:
            yield base.with_name(base.name + packed)


def _own_files(ledger: Ledger, partition: PartitionView) -> list[Path]:
    """Return the run's own answers and prompts, which may lie in the same folder."""
    own = [Path(each.path).resolve() for each in shards.present(ledger, partition.id)]
    return [*own, Path(partition.prompts_path).resolve()]


def refuse_taking(ledger: Ledger, run: RunView, sources: Sequence[Source]) -> None:
    """Raise ConflictError, by name, where nothing may be taken over now."""
    if run.state is RunState.FINISHED:
        raise ConflictError(
            f"run {run.id} is finished; no sample of it waits for an answer",
            hint="raise a goal or a budget first, if some still should",
        )
    busy = {each.partition_id for each in workers.living(ledger, run.id)}
    for source in sources:
        partition = source.partition
        if partition.id in busy:
            raise ConflictError(
                f"a worker is at work on {partition.name}",
                hint="stop the service that it belongs to, then adopt",
            )
        if partition.intake != "tokenized":
            raise ConflictError(
                f"the prompts of {partition.name} are still being read"
                f" ({partition.n_tokenized:,} of {partition.counts.total:,} are ready)",
                hint="let the run go on until all of them are ready, stop it, then adopt",
            )
