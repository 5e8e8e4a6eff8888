"""A partition that a worker has worked through, and merges of it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.core.reasoning import ReasoningMarks
from app.export.choosing import Choice
from app.export.generated import Source
from app.export.merging import MergeOrder, merge
from app.export.planning import RunPart
from app.export.tally import Merged
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import THINK_CLOSE_ID, THINK_OPEN_ID
from tests.stage import Stage

MARKS = ReasoningMarks(opening=frozenset({THINK_OPEN_ID}), closing=frozenset({THINK_CLOSE_ID}))


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(port=0) as running:
        yield running


@dataclass
class Merging:
    """What is merged, and to where."""

    stage: Stage
    out: Path

    def part(self, choice: Choice | None = None) -> RunPart:
        source = Source(
            partition=self.stage.partition(),
            token_path=self.stage.token_path,
            source="owner/dataset",
            marks=MARKS,
        )
        return RunPart(ledger=self.stage.ledger, source=source, choice=choice or Choice())

    def order(self, choice: Choice | None = None, **changes: Any) -> MergeOrder:
        order = MergeOrder(
            folder=self.out,
            parts=[self.part(choice)],
            identity=f"{choice}",
            facts={"gen_ids": {}, "sources": {"p": "owner/dataset"}, "unfinished_runs": []},
            shard_tokens=1 << 30,
        )
        return replace(order, **changes)

    def merge(self, choice: Choice | None = None, **changes: Any) -> Merged:
        return merge(self.order(choice, **changes), lambda _name, _n: None)

    def records(self) -> list[dict[str, Any]]:
        return [
            orjson.loads(line)
            for path in sorted((self.out / "data").glob("*.jsonl"))
            for line in path.read_bytes().splitlines()
        ]


@pytest.fixture
def merging(simulator: SimulatorThread, tmp_path: Path) -> Merging:
    stage = Stage(tmp_path, simulator.url)
    return Merging(stage=stage, out=tmp_path / "merged")


def written(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder but the lock, by its path in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".merging.lock"
    }
