"""A home, a prompts folder and an output folder for the tests of preflight, intake, submission.

Everything is real: files, a ledger, and the simulator on a socket.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import text as sql

from app.clock import SystemClock
from app.core.spec import ClassSpec, PartitionSpec, RunSpec
from app.core.types import PartitionId
from app.core.views import PartitionView, RunView
from app.events import Event
from app.files.tokens import TokenFile, token_path
from app.ledger import runs
from app.ledger.counters import recount
from app.ledger.db import Ledger
from app.ledger.migrate import upgrade
from app.preflight import Report, preflight
from app.settings import Settings
from app.sglang.client import ServerClient
from app.simulator.server import SimulatorThread
from app.submission import submit
from app.tokenizing import TokenizeOrder, TokenizeServers, tokenize_partition

INPUTS = Path(__file__).parent.parent / "inputs"


def user(key: str, content: object, **more: object) -> dict[str, object]:
    return {"id": key, "messages": [{"role": "user", "content": content}], **more}


@dataclass
class Desk:
    """Where one run of partitions is prepared, checked and submitted."""

    folder: Path
    simulator: SimulatorThread
    spec: RunSpec = field(init=False)
    events: list[Event] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.prompts = self.folder / "prompts"
        self.output = self.folder / "output"
        self.home.mkdir(exist_ok=True)
        self.prompts.mkdir(exist_ok=True)
        self.clock = SystemClock()
        self.settings = Settings(home=self.home)
        self.ledger_path = self.home / "ledger.db"
        upgrade(self.ledger_path)
        self.ledger = Ledger(self.ledger_path)
        self.spec = RunSpec(
            name="test",
            server_urls=(self.simulator.url,),
            prompts_dir=str(self.prompts),
            output_dir=str(self.output),
            classes={"long": ClassSpec(concurrency=8, max_new_tokens=64)},
            startup_wait_s=20,
        )

    def write(self, partition: str, rows: Iterable[object]) -> Path:
        path = self.prompts / partition / "prompts.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        return path

    def copy(self, partition: str, name: str) -> Path:
        path = self.prompts / partition / "prompts.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((INPUTS / name).read_bytes())
        return path

    def change(self, **changes: Any) -> None:
        self.spec = replace(self.spec, **changes)

    def own(self, partition: str, **changes: Any) -> None:
        own = PartitionSpec(class_name="long", **changes)
        self.change(partitions={**self.spec.partitions, partition: own})

    def url(self, url: str) -> None:
        self.change(server_urls=(url,))

    async def check(self, **settings: Any) -> Report:
        given = self.settings.model_copy(update=settings)
        return await preflight(self.spec, given, self.clock, self.said.append)

    async def submit(self, *, accept_changes: bool = False, home: Path | None = None) -> RunView:
        report = await self.check()
        assert report.errors == ()
        return await self.submit_checked(report, accept_changes=accept_changes, home=home)

    async def submit_checked(
        self, report: Report, *, accept_changes: bool = False, home: Path | None = None
    ) -> RunView:
        return await submit(
            self.ledger,
            home or self.home,
            self.spec,
            report,
            accept_changes=accept_changes,
            who="operator",
            clock=self.clock,
            say=self.said.append,
        )

    def partition(self, name: str = "p") -> PartitionView:
        (run,) = runs.list_runs(self.ledger)
        return next(one for one in runs.partitions_of(self.ledger, run.id) if one.name == name)

    def tokens_at(self, partition: PartitionView) -> Path:
        return token_path(self.home, partition.run_id, partition.name)

    async def tokenize(self, name: str = "p", view: PartitionView | None = None) -> PartitionView:
        """Tokenize the partition as it is, or as an earlier look saw it."""
        partition = view or self.partition(name)
        async with ServerClient(self.spec.server_urls[0]) as client:
            order = TokenizeOrder(
                partition=partition, spec=self.spec, token_path=self.tokens_at(partition)
            )
            servers = TokenizeServers([client], self.clock, self.events.append)
            await tokenize_partition(self.ledger, order, servers, self.clock, self.events.append)
        done = self.partition(name)
        assert recount(self.ledger, done.id) == []
        return done

    async def run(self, name: str = "p") -> PartitionView:
        await self.submit()
        return await self.tokenize(name)

    def samples(self, partition_id: PartitionId) -> list[Mapping[str, Any]]:
        """Return the rows of a partition's samples, in input order."""
        with self.ledger.read() as connection:
            rows = connection.execute(
                sql("SELECT * FROM sample WHERE partition_id = :id ORDER BY position"),
                {"id": partition_id},
            ).mappings()
            return [dict(row) for row in rows]

    def by_key(self, name: str = "p") -> dict[str, Mapping[str, Any]]:
        return {row["key"]: row for row in self.samples(self.partition(name).id)}

    def ids_of(self, row: Mapping[str, Any], name: str = "p") -> list[int]:
        """Return what a worker would send for a sample."""
        tokens = TokenFile(self.tokens_at(self.partition(name)))
        try:
            return list(tokens.read(row["token_offset"], row["prompt_tokens"]))
        finally:
            tokens.close()


async def until(predicate: Any, what: str) -> None:
    """Wait for a fact; the bound only ends a test that hangs."""
    async with asyncio.timeout(30):
        while not predicate():  # noqa: ASYNC110 - rows and files have no event
            await asyncio.sleep(0.005)
    assert predicate(), what
