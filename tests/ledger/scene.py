"""Builds runs in a real ledger, through the ledger's own functions only.

Owns no judgement; `Scene.check` is what must hold after every step. Workers are played by `Hand`.
"""

from dataclasses import dataclass
from pathlib import Path

from app.core.types import PartitionId, RunId
from app.core.views import PartitionView
from app.ledger import intake_rows, runs, workers
from app.ledger.counters import recount
from app.ledger.db import Ledger
from app.ledger.runs import NewPartition, NewRun
from tests.ledger.hand import GEN, NOW, Hand

CAP = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A partition to be made, with `n` samples that can be claimed."""

    name: str = "p"
    n: int = 10
    cap: int = CAP
    budget: int | None = None
    goal: int | None = None


class Scene:
    """One ledger file and the runs in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ledger = Ledger(path)
        self.partition_ids: list[PartitionId] = []

    def close(self) -> None:
        self.ledger.close()

    def run(self, *parts: Part, name: str = "run", budget: int | None = None) -> list[PartitionId]:
        """Create a running run; return its partitions."""
        new_run = NewRun(
            name=name,
            spec_json="{}",
            output_dir="-",
            token_budget=budget,
            fingerprint_json="{}",
            gen_id=GEN,
        )
        rows = [
            NewPartition(
                name=part.name,
                class_name="short",
                prompts_path="-",
                max_new_tokens=part.cap,
                own_concurrency=None,
                token_budget=part.budget,
                goal_samples=part.goal,
            )
            for part in parts
        ]
        run_id = runs.create_run(self.ledger, new_run, rows, NOW)
        made = [view.id for view in runs.partitions_of(self.ledger, run_id)]
        for partition_id, part in zip(made, parts, strict=True):
            self.fill(partition_id, part.n)
        self.partition_ids += made
        return made

    def one(self, n: int = 10, **limits: int) -> PartitionId:
        """Create a run of one partition."""
        return self.run(Part(n=n, **limits))[0]  # type: ignore[arg-type]  # cap, budget, goal

    def fill(self, partition_id: PartitionId, n: int) -> None:
        rows = [(k, k, 0, f"row{k}", "pending", f"sha{k}", None, None, None) for k in range(n)]
        intake_rows.insert_many(self.ledger, partition_id, rows)
        intake_rows.scanned(self.ledger, partition_id)
        waiting = intake_rows.untokenized(self.ledger, partition_id, -1, n)
        tokenized = [
            intake_rows.Tokenized(sample_id=row.sample_id, prompt_tokens=3, token_offset=3 * k)
            for k, row in enumerate(waiting)
        ]
        intake_rows.record_tokens(self.ledger, partition_id, tokenized, [], 3 * n)
        intake_rows.all_tokenized(self.ledger, partition_id)

    def hand(self, partition_id: PartitionId) -> Hand:
        worker_id = workers.register(self.ledger, partition_id, 30, NOW)
        return Hand(self.ledger, partition_id, worker_id)

    def view(self, partition_id: PartitionId) -> PartitionView:
        return runs.get_partition(self.ledger, partition_id)

    def run_id(self, partition_id: PartitionId) -> RunId:
        return self.view(partition_id).run_id

    def check(self) -> None:
        """Check that every counter of every partition is what its rows say."""
        problems = {each: recount(self.ledger, each) for each in self.partition_ids}
        assert not any(problems.values()), problems

    def sql(self, statement: str, **values: object) -> None:
        """Set up a state that only time or another program can bring about."""
        with self.ledger.write() as connection:
            connection.exec_driver_sql(statement, values)

    def rows(self, statement: str, **values: object) -> list[tuple[object, ...]]:
        with self.ledger.read() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(statement, values)]

    def everything(self) -> dict[str, list[tuple[object, ...]]]:
        """Return every row of every table: two equal answers mean that nothing happened."""
        tables = (
            "run",
            "partition",
            "sample",
            "checkpoint",
            "attempt",
            "worker",
            "shard",
            "measure",
        )
        return {each: self.rows(f"SELECT * FROM {each}") for each in tables}  # noqa: S608 - ours
