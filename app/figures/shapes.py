"""The figures of a run and of its partitions, as values: what pages, terminal and API show.

Owns the shapes and trivial sums. Invariant: a figure that is not known is None or an `Unknown`
with its reason, never a made-up number; states always sum to the total.
"""

from dataclasses import dataclass
from datetime import datetime

from app.core.conditions import Condition
from app.core.estimate import Estimate, Unknown
from app.core.landing import Landing
from app.core.loads import ServerLoad
from app.core.states import PartitionState, RunState
from app.core.types import Counts, PartitionId, RunId, Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFigures:
    """One partition. `speed_tokens_per_s` is None while nothing measures or nothing works.

    `remarks` are sentences beside the state: budget reached, what its worker says of itself.
    `concurrency_requests` is how many may be in flight now: its own, or its share of the class;
    None while it has no worker and no own one. `ends` is where its budget or a deadline ends it
    before its samples are done; None if neither does, or while that is not known.
    `spark_tokens_per_s` is its speed over the last half hour in 60 pieces of 30 s, the newest last,
    None where nothing was recorded.
    """

    id: PartitionId
    name: str
    class_name: str
    state: PartitionState
    state_since: datetime
    reason: str
    intake: str
    is_over: bool
    percent: int
    counts: Counts
    tokens: Tokens
    reserved_tokens: int
    own_concurrency: int | None
    token_budget_tokens: int | None
    goal_samples: int | None
    budget_reached: bool
    sealed_at: datetime | None
    n_in_flight: int
    speed_tokens_per_s: float | None
    time_left: Estimate | Unknown
    last_token_at: datetime | None
    remarks: tuple[str, ...] = ()
    max_new_tokens: int = 0
    concurrency_requests: int | None = None
    spark_tokens_per_s: tuple[float | None, ...] = ()
    deadline_at: datetime | None = None
    ends: Landing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """A run as it was `at` one moment. `decided_by` is the partition that ends last.

    `is_served`: whether a service lives that works at it. `heartbeat_at`: when its workers (without
    any, the supervisor) last recorded something. `mean_hour_tokens_per_s` is the mean of the last
    hour, `best_tokens_per_s` the highest five-minute mean of the run; None before there is one.
    """

    run_id: RunId
    name: str
    state: RunState
    state_since: datetime
    reason: str
    output_dir: str
    at: datetime
    percent: int
    token_budget_tokens: int | None
    speed_tokens_per_s: float | None
    time_left: Estimate | Unknown
    decided_by: str | None
    conditions: tuple[Condition, ...]
    partitions: tuple[PartitionFigures, ...]
    is_served: bool = True
    created_at: datetime | None = None
    heartbeat_at: datetime | None = None
    mean_hour_tokens_per_s: float | None = None
    best_tokens_per_s: float | None = None
    servers: tuple[ServerLoad, ...] = ()
    deadline_at: datetime | None = None
    ends: Landing | None = None

    @property
    def counts(self) -> Counts:
        return total_counts([each.counts for each in self.partitions])

    @property
    def tokens(self) -> Tokens:
        return total_tokens([each.tokens for each in self.partitions])

    @property
    def n_in_flight(self) -> int:
        return sum(each.n_in_flight for each in self.partitions)

    @property
    def last_token_at(self) -> datetime | None:
        return max(
            (each.last_token_at for each in self.partitions if each.last_token_at), default=None
        )


def total_counts(several: list[Counts]) -> Counts:
    return Counts(
        pending=sum(each.pending for each in several),
        running=sum(each.running for each in several),
        ok=sum(each.ok for each in several),
        truncated=sum(each.truncated for each in several),
        empty=sum(each.empty for each in several),
        suspect=sum(each.suspect for each in several),
        failed=sum(each.failed for each in several),
        rejected=sum(each.rejected for each in several),
    )


def total_tokens(several: list[Tokens]) -> Tokens:
    return Tokens(
        received=sum(each.received for each in several),
        kept=sum(each.kept for each in several),
        wasted=sum(each.wasted for each in several),
        held=sum(each.held for each in several),
    )
