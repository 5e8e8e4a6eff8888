"""From runs and folders to the order of a merge: which partitions, in which order, told how.

Owns what the identity of a merge is made of: of each run's partitions how they stand, of each
dataset's answers the bytes, and the settings that decide about bytes. Reads only.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from app.core.reasoning import ReasoningMarks
from app.core.spec import from_json
from app.core.states import RunState
from app.core.views import PartitionView, RunView
from app.errors import ConflictError
from app.export.choosing import Choice
from app.export.encoding import Encoder, Writing
from app.export.existing import Existing, existing_rows, source_of
from app.export.generated import Row, Source, rows_of
from app.export.merging import Part
from app.files.sealed import read_manifest
from app.files.space import storage_error
from app.files.tokens import token_path
from app.ledger import runs
from app.ledger.db import Ledger

_VERSION = 1  # of the bytes: the same identity means the same records


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """A partition of a run."""

    ledger: Ledger
    source: Source
    choice: Choice

    @property
    def name(self) -> str:
        return self.source.partition.name

    def rows(self, after: int) -> Iterator[Row]:
        return rows_of(self.ledger, self.source, self.choice, after)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingPart:
    """A dataset's own answers."""

    existing: Existing
    encoder: Encoder
    choice: Choice

    @property
    def name(self) -> str:
        return self.existing.name

    def rows(self, after: int) -> Iterator[Row]:
        return existing_rows(self.existing, self.encoder, self.choice, after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The partitions in order, what the manifest says of them, and what the bytes depend on."""

    parts: Sequence[Part]
    facts: dict[str, Any]
    identity: str
    n_samples: int | None  # None where datasets are among them: their turns are not counted yet


def run_parts(
    ledger: Ledger,
    home: Path,
    run: RunView,
    choice: Choice,
    marks: ReasoningMarks | None,
    *,
    with_messages: bool = False,
) -> list[RunPart]:
    """Return the partitions of a run. `marks`: instead of those that its spec names."""
    return [
        RunPart(
            ledger=ledger,
            source=Source(
                partition=each,
                token_path=token_path(home, run.id, each.name),
                source=source_of(Path(each.prompts_path).parent),
                marks=marks or _marks_of(run),
                with_messages=with_messages,
            ),
            choice=choice,
        )
        for each in runs.partitions_of(ledger, run.id)
    ]


def plan(
    chosen: Sequence[RunView],
    of_runs: Sequence[RunPart],
    of_datasets: Sequence[ExistingPart],
    settings: Mapping[str, object],
    writing: Writing,
) -> Plan:
    """Return the plan; ConflictError if two partitions have one name: ids would not be unique."""
    parts: list[RunPart | ExistingPart] = [*of_runs, *of_datasets]
    names = [part.name for part in parts]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConflictError(
            f"two partitions are called {twice[0]}; the ids of their records would be the same",
            hint="merge the runs one by one, each to a folder of its own",
        )
    facts: dict[str, Any] = {
        "runs": [
            {
                "run": run.name,
                "state": run.state.value,
                "partitions": [
                    _standing(each.source.partition)
                    for each in of_runs
                    if each.source.partition.run_id == run.id
                ],
            }
            for run in chosen
        ],
        "unfinished_runs": [run.name for run in chosen if run.state is not RunState.FINISHED],
        "datasets": [
            {"partition": each.name, "sha256": _digest(each.existing.path)} for each in of_datasets
        ],
        "sources": {
            **{each.name: each.source.source for each in of_runs},
            **{each.name: each.existing.source for each in of_datasets},
        },
        "settings": dict(settings),
        "gen_ids": {
            **{key: entry for run in chosen for key, entry in _generations(run).items()},
            **{
                each.existing.gen_id: {"origin": "existing", **asdict(writing)}
                for each in of_datasets
            },
        },
    }
    content = orjson.dumps([_VERSION, facts], option=orjson.OPT_SORT_KEYS)
    return Plan(
        parts=parts,
        facts=facts,
        identity=hashlib.sha256(content).hexdigest(),
        n_samples=None
        if of_datasets
        else sum(each.source.partition.counts.total for each in of_runs),
    )


def _marks_of(run: RunView) -> ReasoningMarks:
    spec = from_json(run.spec_json)
    return ReasoningMarks(
        opening=_single(spec.think_open_ids), closing=_single(spec.think_close_ids)
    )


def _single(ids: tuple[int, ...] | None) -> frozenset[int]:
    """Return the mark's id; a mark of several ids is not looked for."""
    return frozenset(ids) if ids and len(ids) == 1 else frozenset()


def _standing(partition: PartitionView) -> dict[str, object]:
    return {
        "partition": partition.name,
        "counts": asdict(partition.counts),
        "kept_tokens": partition.tokens.kept,
    }


def _generations(run: RunView) -> dict[str, object]:
    """Return what the run's manifest says of the ways in which its answers were generated."""
    manifest = read_manifest(Path(run.output_dir) / "manifest.json") or {}
    listed = manifest.get("gen_ids")
    entries = listed if isinstance(listed, dict) else {}
    return {
        key: entry
        for key, entry in entries.items()
        if not isinstance(entry, dict) or entry.get("run") == run.name
    }


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise storage_error(path, "read", error) from error
