"""A home with a real ledger and a run in it, made through the ledger's own functions.

Settles samples as a worker would (register, claim, settle), without a server.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from app.clock import SystemClock
from app.core.spec import ClassSpec, PartitionSpec, RunSpec, to_json
from app.core.states import SampleState
from app.core.types import (
    Claim,
    Fail,
    Gain,
    Keep,
    Line,
    RunId,
    Settled,
    ShardId,
    Tick,
    WorkerId,
)
from app.core.views import PartitionView, RunView
from app.ledger import intake_rows, runs, settle, shards, workers
from app.ledger.claims import Wish, claim
from app.ledger.db import Ledger
from app.ledger.intake_rows import Tokenized
from app.ledger.runs import NewPartition, NewRun
from tests.stage import _new_ledger

GEN_ID = "gen-one"


@dataclass
class Home:
    folder: Path
    names: Sequence[str] = ("B1_chat", "B2_code")
    n_samples: int = 10
    run_name: str = "night"
    token_budget: int | None = None
    partition_budget: int | None = None
    goal_samples: int | None = None
    server_url: str = "http://127.0.0.1:9"
    _workers: dict[str, WorkerId] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = SystemClock()
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "ledger.db").write_bytes(_new_ledger())
        self.ledger = Ledger(self.folder / "ledger.db")
        self.output_dir = self.folder.parent / "out"
        self.output_dir.mkdir(exist_ok=True)
        self.run_id = self.add_run(self.run_name)

    def spec(self, name: str) -> RunSpec:
        return RunSpec(
            name=name,
            server_urls=(self.server_url,),
            prompts_dir=str(self.output_dir),
            output_dir=str(self.output_dir),
            classes={
                "short": ClassSpec(concurrency=8, max_new_tokens=100),
                "long": ClassSpec(concurrency=4, max_new_tokens=200),
            },
            partitions={each: PartitionSpec(class_name=_class(each)) for each in self.names},
        )

    def add_run(self, name: str) -> RunId:
        new = NewRun(
            name=name,
            spec_json=to_json(self.spec(name)),
            output_dir=str(self.output_dir),
            token_budget=self.token_budget,
            fingerprint_json="{}",
            gen_id=GEN_ID,
        )
        partitions = [
            NewPartition(
                name=each,
                class_name=_class(each),
                prompts_path=str(self.output_dir / each / "prompts.jsonl"),
                max_new_tokens=100,
                own_concurrency=None,
                token_budget=self.partition_budget,
                goal_samples=self.goal_samples,
            )
            for each in self.names
        ]
        run_id = runs.create_run(self.ledger, new, partitions, self.clock.now())
        for partition in runs.partitions_of(self.ledger, run_id):
            self._fill(partition)
        return run_id

    def _fill(self, partition: PartitionView) -> None:
        rows: list[intake_rows.NewSample] = [
            (n, n, 0, f"a{n}", SampleState.PENDING, f"{n:064x}", None, None, 100)
            for n in range(self.n_samples)
        ]
        intake_rows.insert_many(self.ledger, partition.id, rows)
        intake_rows.scanned(self.ledger, partition.id)
        waiting = intake_rows.untokenized(self.ledger, partition.id, -1, self.n_samples)
        ready = [
            Tokenized(sample_id=one.sample_id, prompt_tokens=4, token_offset=4 * n)
            for n, one in enumerate(waiting)
        ]
        intake_rows.record_tokens(self.ledger, partition.id, ready, [], 4 * len(ready))
        intake_rows.all_tokenized(self.ledger, partition.id)

    @property
    def run(self) -> RunView:
        return runs.get_run(self.ledger, self.run_id)

    def partition(self, name: str) -> PartitionView:
        return next(
            each for each in runs.partitions_of(self.ledger, self.run_id) if each.name == name
        )

    # -- the work of a worker -------------------------------------------------------------

    def claim(self, name: str, n: int) -> list[Claim]:
        wish = Wish(
            worker_id=self._worker(name),
            n=n,
            reserved_tokens=0,
            reservation=lambda held, cap: cap - held,
            gen_id=GEN_ID,
        )
        return claim(self.ledger, wish, self.clock.now(), Random(1))

    def _worker(self, name: str) -> WorkerId:
        if name not in self._workers:
            partition_id = self.partition(name).id
            worker_id = workers.register(self.ledger, partition_id, 30.0, self.clock.now())
            self._workers[name] = worker_id
        return self._workers[name]

    def keep(
        self,
        name: str,
        n: int,
        *,
        tokens: int = 50,
        state: SampleState = SampleState.OK,
        first_token_ms: int | None = None,
    ) -> None:
        """Answer the next `n` samples, each with a line in a shard.

        With a time to the first token it took ten times that in all.
        """
        claims = self.claim(name, n)
        path = self.output_dir / name / f"responses-1-{self._worker(name)}-1.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        partition = self.partition(name)
        shard_id = shards.open_shard(self.ledger, partition.id, self._worker(name), str(path))
        settled, content = [], b""
        for each in claims:
            line = b'{"id":"%s"}\n' % each.key.encode()
            place = Line(
                shard_id=shard_id, offset=len(content), n_bytes=len(line), output_tokens=tokens
            )
            content += line
            settled.append(
                Settled(
                    sample_id=each.sample_id,
                    attempt=each.attempt,
                    outcome=Keep(
                        state=state,
                        finish_reason="length" if state is SampleState.TRUNCATED else "stop",
                    ),
                    held_tokens=0,
                    unsaved=self._gain(each, tokens),
                    line=place,
                    prompt_tokens=each.prompt_tokens,
                    first_token_ms=first_token_ms,
                    latency_ms=None if first_token_ms is None else 10 * first_token_ms,
                )
            )
        path.write_bytes(content)
        self._settle(name, settled, shard_id=shard_id, shard_bytes=len(content))

    def fail(self, name: str, n: int, *, reason: str = "500 boom") -> None:
        settled = [
            Settled(
                sample_id=each.sample_id,
                attempt=each.attempt,
                outcome=Fail(reason=reason),
                held_tokens=0,
            )
            for each in self.claim(name, n)
        ]
        self._settle(name, settled)

    def beat(self, name: str, **changes: object) -> None:
        """Send one tick with nothing settled: in_flight=…, notice=…, waiting_since=…."""
        partition = self.partition(name)
        tick = Tick(worker_id=self._worker(name), partition_id=partition.id)
        tick = replace(tick, **changes)  # type: ignore[arg-type]  # named by the tests
        settle.settle(self.ledger, tick, self.clock.now())

    def leave(self) -> None:
        """Let all workers go."""
        for worker_id in self._workers.values():
            workers.bury(self.ledger, worker_id, "left", self.clock.now())
        self._workers.clear()

    def _settle(
        self,
        name: str,
        settled: Sequence[Settled],
        *,
        shard_id: ShardId | None = None,
        shard_bytes: int = 0,
    ) -> None:
        tick = Tick(
            worker_id=self._worker(name),
            partition_id=self.partition(name).id,
            settled=tuple(settled),
            shard_id=shard_id,
            shard_bytes=shard_bytes,
        )
        settle.settle(self.ledger, tick, self.clock.now())

    def _gain(self, each: Claim, tokens: int) -> Gain:
        return Gain(
            sample_id=each.sample_id,
            attempt=each.attempt,
            from_token=0,
            rid=each.rid,
            server=self.server_url,
            gen_id=GEN_ID,
            ids=bytes(4 * tokens),
        )


def _class(name: str) -> str:
    return "short" if name.startswith("B1") else "long"
