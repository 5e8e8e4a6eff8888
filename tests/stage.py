"""A stage for worker tests: a real ledger, a run with tokenized samples, a worker run inline.

Builds through the ledger's own functions what intake would build, without its HTTP calls.
"""

import asyncio
import hashlib
from array import array
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import orjson

from app.clock import SystemClock
from app.core.types import PartitionId, RunId, SampleId, WorkerId
from app.core.views import PartitionView
from app.events import Event
from app.files.tokens import TokenFile
from app.ledger import intake_rows, runs, servers, workers
from app.ledger.counters import recount
from app.ledger.db import Ledger
from app.ledger.migrate import upgrade
from app.ledger.runs import NewPartition, NewRun
from app.simulator.tokenizer import encode_chat
from app.worker.plan import WorkerPlan
from app.worker.process import make_worker
from app.worker.worker import Worker

GEN_ID = "gen-one"


@dataclass
class Stage:
    """A run of one partition in its own folder."""

    folder: Path
    url: str
    concurrency: int = 8
    max_new_tokens: int = 16_384
    token_budget: int | None = None
    goal_samples: int | None = None
    plan_changes: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = SystemClock()
        path = self.folder / "ledger.db"
        upgrade(path)
        self.ledger = Ledger(path)
        self.output = self.folder / "output"
        self.token_path = self.folder / "tokens" / "p.u32"
        self.server_id = servers.remember_server(self.ledger, self.url, "{}", self.clock.now())
        self.prompts: dict[int, list[int]] = {}

    def fill(self, texts: Sequence[str]) -> None:
        """Create the run with these user texts as prompts."""
        now = self.clock.now()
        self.run_id = runs.create_run(
            self.ledger,
            NewRun(
                name="test",
                spec_json="{}",
                output_dir=str(self.output),
                token_budget=None,
                fingerprint_json="{}",
                gen_id=GEN_ID,
            ),
            [
                NewPartition(
                    name="p",
                    class_name="short",
                    prompts_path="-",
                    max_new_tokens=self.max_new_tokens,
                    own_concurrency=None,
                    token_budget=self.token_budget,
                    goal_samples=self.goal_samples,
                )
            ],
            now,
        )
        self.partition_id = runs.partitions_of(self.ledger, self.run_id)[0].id
        rows = [
            (n, n, 0, f"row{n}", "pending", _sha(text), None, None, None)
            for n, text in enumerate(texts)
        ]
        intake_rows.insert_many(self.ledger, self.partition_id, rows)
        intake_rows.scanned(self.ledger, self.partition_id)
        ids = [encode_chat([{"role": "user", "content": text}]) for text in texts]
        self.prompts = dict(enumerate(ids))
        tokens = TokenFile(self.token_path)
        offsets = tokens.append([array("I", each) for each in ids])
        tokens.sync()
        waiting = intake_rows.untokenized(self.ledger, self.partition_id, -1, len(ids))
        intake_rows.record_tokens(
            self.ledger,
            self.partition_id,
            [
                intake_rows.Tokenized(
                    sample_id=row.sample_id, prompt_tokens=len(prompt), token_offset=offset
                )
                for row, prompt, offset in zip(waiting, ids, offsets, strict=True)
            ],
            [],
            tokens.size_tokens,
        )
        intake_rows.all_tokenized(self.ledger, self.partition_id)
        tokens.close()

    def partition(self) -> PartitionView:
        return runs.get_partition(self.ledger, self.partition_id)

    def register(self) -> WorkerId:
        worker_id = workers.register(self.ledger, self.partition_id, 30, self.clock.now())
        self.share(worker_id, self.concurrency)
        (self.output / "p").mkdir(parents=True, exist_ok=True)
        return worker_id

    def share(self, worker_id: WorkerId, n: int) -> None:
        workers.set_shares(self.ledger, {worker_id: {self.server_id: n}})

    def plan(self, worker_id: WorkerId) -> WorkerPlan:
        plan = WorkerPlan(
            worker_id=worker_id,
            run_id=RunId(self.run_id),
            partition_id=PartitionId(self.partition_id),
            partition="p",
            output_dir=self.output / "p",
            token_path=self.token_path,
            gen_id=GEN_ID,
            server_urls=(self.url,),
            max_new_tokens=self.max_new_tokens,
            tick_s=0.1,
        )
        return replace(plan, **self.plan_changes)  # type: ignore[arg-type]  # test's own changes

    async def work(
        self, until: Callable[[PartitionView], bool] | None = None, events: list[Event] | None = None
    ) -> Worker:
        """Run one worker inline until nothing is left, or until the condition holds."""
        done = until or (lambda view: view.is_over)
        heard: list[Event] = [] if events is None else events
        async with AsyncExitStack() as stack:
            worker = await make_worker(
                self.ledger, self.plan(self.register()), self.clock, heard.append, stack
            )
            running = asyncio.create_task(worker.run())
            while not running.done() and not done(self.partition()):
                await asyncio.sleep(0.02)
            worker.leave("test is over")
            await running
        return worker

    def lines(self) -> list[dict[str, object]]:
        """Return every line that stands in the partition's shards."""
        return [
            orjson.loads(line)
            for path in sorted((self.output / "p").glob("responses*.jsonl"))
            for line in path.read_bytes().splitlines()
        ]

    def assert_consistent(self) -> None:
        """Check what must hold whenever nothing runs."""
        assert recount(self.ledger, self.partition_id) == []
        view = self.partition()
        assert view.counts.running == 0
        assert view.counts.total == len(self.prompts)


def random_texts(n: int, seed: int, mark: str = "") -> list[str]:
    random = Random(seed)
    return [f"question {k} {random.random()} {mark}".strip() for k in range(n)]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sample_of(line: dict[str, object]) -> SampleId:
    return SampleId(int(str(line["rid"]).split("-")[2]))
