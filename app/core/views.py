"""What the ledger says of a run, as values: read once, handed up, never written back.

Shapes only. Moments are aware UTC datetimes; None means that it has not happened.
"""

from dataclasses import dataclass
from datetime import datetime

from app.core.states import PartitionState, RunState
from app.core.types import Counts, PartitionId, RunId, ServerId, ShardId, Tokens, WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    id: RunId
    name: str
    state: RunState
    state_since: datetime
    reason: str
    spec_json: str
    output_dir: str
    token_budget: int | None
    fingerprint_json: str
    gen_id: str
    created_at: datetime
    deadline_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    id: PartitionId
    run_id: RunId
    name: str
    class_name: str
    state: PartitionState
    state_since: datetime
    reason: str
    prompts_path: str
    intake: str
    own_concurrency: int | None
    token_budget: int | None
    goal_samples: int | None
    max_new_tokens: int
    counts: Counts
    tokens: Tokens
    reserved_tokens: int
    n_tokenized: int
    token_file_tokens: int
    budget_reached: bool
    sealed_at: datetime | None
    deadline_at: datetime | None = None
    n_waiting: int = 0  # of the pending ones: turns that wait for an earlier one

    @property
    def goal_reached(self) -> bool:
        return self.goal_samples is not None and self.counts.kept >= self.goal_samples

    @property
    def is_over(self) -> bool:
        """Nothing is left that may be claimed, and nothing runs."""
        if self.counts.running or self.intake == "scanning":
            return False
        return self.counts.pending == 0 or self.goal_reached or self.budget_reached


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    id: WorkerId
    partition_id: PartitionId
    pid: int
    state: str
    desired: str
    lease_expires_at: datetime
    started_at: datetime
    exit_reason: str
    notice: str
    in_flight: int
    received_tokens: int
    last_token_at: datetime | None
    waiting_since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    id: ServerId
    url: str
    facts_json: str
    checked_at: datetime | None
    last_good_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardView:
    id: ShardId
    partition_id: PartitionId
    worker_id: WorkerId | None
    kind: str
    path: str
    committed_bytes: int
    inode: int
