"""A stage for worker tests: a real ledger, a run with tokenized samples, workers run inline.

Builds through the ledger's own functions what intake would build, without its HTTP calls.
Invariant: whenever nothing runs, `assert_consistent` holds, whatever a test did before.
"""

import asyncio
import hashlib
from array import array
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from app.clock import SystemClock
from app.core.types import PartitionId, RunId, SampleId, WorkerId
from app.core.views import PartitionView, WorkerView
from app.events import Event
from app.files.tokens import TokenFile
from app.ledger import intake_rows, runs, servers, workers
from app.ledger.counters import recount
from app.ledger.db import BUSY_TIMEOUT_MS, Ledger
from app.ledger.migrate import upgrade
from app.ledger.runs import NewPartition, NewRun
from app.simulator.tokenizer import encode_chat
from app.worker.plan import WorkerPlan
from app.worker.process import make_worker
from tests import books
from tests.waiting import Shift, wait_until

GEN_ID = "gen-one"
TICK_S = 0.1


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
    busy_timeout_ms: int = BUSY_TIMEOUT_MS

    def __post_init__(self) -> None:
        self.clock = SystemClock()
        path = self.folder / "ledger.db"
        path.write_bytes(_new_ledger())
        self.ledger = Ledger(path, busy_timeout_ms=self.busy_timeout_ms)
        self.output = self.folder / "output"
        self.token_path = self.folder / "tokens" / "p.u32"
        self.server_id = servers.remember_server(self.ledger, self.url, "{}", self.clock.now())
        self.prompts: dict[int, list[int]] = {}
        self.keys: list[str] = []

    # -- the run --------------------------------------------------------------------------

    def fill(self, texts: Sequence[str], keys: Sequence[str] | None = None) -> None:
        """Create the run with these user texts as prompts."""
        ids = [encode_chat([{"role": "user", "content": text}]) for text in texts]
        self.fill_with(texts, ids, keys or [f"row{n}" for n in range(len(texts))])

    def fill_rows(self, rows: Sequence[str]) -> None:
        """Create the run as the failure cases write it: the first word of a row is its id."""
        self.fill(rows, [row.split(" ", 1)[0] for row in rows])

    def fill_raw(self, n: int, prompt_tokens: int) -> None:
        """Create the run with n equally long prompts of plain ids: a measurement's input."""
        prompt = list(range(10, 10 + prompt_tokens))
        self.fill_with([f"raw {k}" for k in range(n)], [prompt] * n, [f"row{k}" for k in range(n)])

    def fill_with(
        self, texts: Sequence[str], ids: Sequence[list[int]], keys: Sequence[str]
    ) -> None:
        """Create the run with these ids as prompts, whatever their texts would be."""
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
            self.clock.now(),
        )
        self.partition_id = runs.partitions_of(self.ledger, self.run_id)[0].id
        self.add_rows(texts, ids, keys)

    def add_rows(self, texts: Sequence[str], ids: Sequence[list[int]], keys: Sequence[str]) -> None:
        """Add samples, tokenized and ready to be claimed; also in mid-run."""
        first = len(self.keys)
        rows = [
            (first + n, first + n, 0, key, "pending", _sha(text), None, None, None)
            for n, (text, key) in enumerate(zip(texts, keys, strict=True))
        ]
        intake_rows.insert_many(self.ledger, self.partition_id, rows)
        intake_rows.scanned(self.ledger, self.partition_id)
        self.prompts |= dict(enumerate(ids, first))
        self.keys += keys
        tokens = TokenFile(self.token_path)
        offsets = tokens.append([array("I", each) for each in ids])
        tokens.sync()
        waiting = intake_rows.untokenized(self.ledger, self.partition_id, first - 1, len(ids))
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

    # -- workers --------------------------------------------------------------------------

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
            tick_s=TICK_S,
            trial_patience_s=0.5,
        )
        return replace(plan, **self.plan_changes)  # type: ignore[arg-type]  # test's own changes

    @asynccontextmanager
    async def shift(self) -> AsyncIterator[Shift]:
        """Run one worker beside the test; at the end it is asked to leave, and must."""
        events: list[Event] = []
        async with AsyncExitStack() as stack:
            worker_id = self.register()
            plan = self.plan(worker_id)
            worker = await make_worker(self.ledger, plan, self.clock, events.append, stack)
            task = asyncio.create_task(worker.run())
            shift = Shift(id=worker_id, worker=worker, events=events, task=task)
            try:
                yield shift
            finally:
                worker.leave("test is over")
                await asyncio.wait([task])
            task.result()

    async def work(self, until: Callable[[PartitionView], bool] | None = None) -> Shift:
        """Run one worker inline until nothing is left, or until the condition holds."""
        done = until or (lambda view: view.is_over)
        async with self.shift() as shift:
            await wait_until(
                lambda: shift.task.done() or done(self.partition()), "the end of the work"
            )
        return shift

    # -- what has come of it --------------------------------------------------------------

    def partition(self) -> PartitionView:
        return runs.get_partition(self.ledger, self.partition_id)

    def worker_row(self, worker_id: WorkerId) -> WorkerView:
        return workers.get_worker(self.ledger, worker_id)

    def rows(self) -> dict[str, Mapping[str, Any]]:
        """Return each sample as the ledger has it, by its key."""
        return books.rows(self.ledger, self.partition_id)

    def states(self) -> dict[str, str]:
        return {key: row["state"] for key, row in self.rows().items()}

    def lines(self) -> list[dict[str, Any]]:
        """Return every line that stands in the partition's shards."""
        return books.lines(self.output / "p")

    def answers(self) -> dict[str, dict[str, Any]]:
        """Return the lines by key; each key once."""
        found = {line["id"]: line for line in self.lines()}
        assert len(found) == len(self.lines())
        return found

    def assert_consistent(self) -> None:
        """Check what must hold whenever nothing runs."""
        assert recount(self.ledger, self.partition_id) == []
        view = self.partition()
        assert view.counts.running == 0
        assert view.counts.total == len(self.prompts)
        books.assert_each_once(self.rows(), self.lines())


@cache
def _new_ledger() -> bytes:
    """Return an empty ledger's file: migrations take longer than many a test."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        upgrade(path)
        return path.read_bytes()


def random_texts(n: int, seed: int, mark: str = "") -> list[str]:
    random = Random(seed)
    return [f"question {k} {random.random()} {mark}".strip() for k in range(n)]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sample_of(line: Mapping[str, object]) -> SampleId:
    return SampleId(int(str(line["rid"]).split("-")[2]))
