"""What a worker is told once, at its start: everything that does not change while it lives.

Owns no decision. What changes (shares, stop, drain) comes with each tick as orders.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.core.reasoning import ReasoningMarks
from app.core.retry import BACKOFF_FIRST_S
from app.core.spec import from_json
from app.core.types import PartitionId, RunId, WorkerId
from app.files.tokens import token_path
from app.ledger import runs, workers
from app.ledger.db import Ledger
from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    worker_id: WorkerId
    run_id: RunId
    partition_id: PartitionId
    partition: str
    output_dir: Path
    token_path: Path
    gen_id: str
    server_urls: tuple[str, ...]
    max_new_tokens: int
    sampling: Mapping[str, object] = field(default_factory=dict)
    samples_per_prompt: int = 1
    max_attempts: int = 3
    backoff_first_s: float = BACKOFF_FIRST_S
    trial_patience_s: float = 10.0
    request_timeout_s: float | None = None
    stop_grace_s: float = 0.0
    stream_interval: int = 64
    think_open: int | None = None
    think_close: int | None = None
    detect_loops: bool = True
    identity: Mapping[str, object] | None = None
    tick_s: float = 0.5
    lease_s: float = 30.0
    api_key: str | None = None

    @property
    def reasoning_marks(self) -> ReasoningMarks:
        return ReasoningMarks(opening=_mark(self.think_open), closing=_mark(self.think_close))


def _mark(token: int | None) -> frozenset[int]:
    return frozenset() if token is None else frozenset({token})


def load_plan(ledger: Ledger, worker_id: WorkerId, settings: Settings) -> WorkerPlan:
    """Read the plan of a registered worker."""
    worker = workers.get_worker(ledger, worker_id)
    partition = runs.get_partition(ledger, worker.partition_id)
    run = runs.get_run(ledger, partition.run_id)
    spec = from_json(run.spec_json)
    return WorkerPlan(
        worker_id=worker_id,
        run_id=run.id,
        partition_id=partition.id,
        partition=partition.name,
        output_dir=Path(run.output_dir) / partition.name,
        token_path=token_path(settings.home, run.id, partition.name),
        gen_id=run.gen_id,
        server_urls=spec.server_urls,
        max_new_tokens=partition.max_new_tokens,
        sampling=spec.sampling,
        samples_per_prompt=spec.samples_per_prompt,
        max_attempts=spec.max_attempts,
        request_timeout_s=spec.request_timeout_s,
        stop_grace_s=spec.stop_grace_s,
        stream_interval=spec.stream_interval,
        think_open=_single(spec.think_open_ids),
        think_close=_single(spec.think_close_ids),
        detect_loops=spec.detect_loops,
        identity=json.loads(run.fingerprint_json).get("identity"),
        tick_s=settings.tick_s,
        lease_s=settings.lease_s,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
    )


def _single(ids: tuple[int, ...] | None) -> int | None:
    """Return the mark's id; a mark of several ids is not looked for."""
    return ids[0] if ids and len(ids) == 1 else None
