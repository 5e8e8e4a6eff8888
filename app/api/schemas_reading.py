"""What the GET routes answer, for OpenAPI: the keys as `figures/json_form.py` writes them.

Shapes only. Answers are made as plain dicts and sent as they are, without passing through here
(`as_json` in `sending.py`); tests hold real answers against these. Units stand in the names,
moments carry their offset, what is not known is null.
"""

from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.core.landing import EndsBy
from app.core.loads import LoadSource
from app.core.states import PartitionState, RunState


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunLine(Answer):
    id: int
    name: str
    state: RunState
    state_since: AwareDatetime
    reason: str
    output_dir: str
    token_budget_tokens: int | None
    created_at: AwareDatetime


class RunsAnswer(Answer):
    """All runs, newest first."""

    runs: list[RunLine]


class CountsAnswer(Answer):
    """Samples by state; the eight states sum to `total`, four of them to `kept`."""

    pending: int
    running: int
    ok: int
    truncated: int
    empty: int
    suspect: int
    failed: int
    rejected: int
    kept: int
    total: int


class TokensAnswer(Answer):
    """Output tokens; received is always kept + wasted + held, used is kept + held."""

    received_tokens: int
    kept_tokens: int
    wasted_tokens: int
    held_tokens: int
    used_tokens: int


class TimeLeftAnswer(Answer):
    """Seconds, with the range of 10 to 90 percent."""

    low: float
    middle: float
    high: float


class ConditionAnswer(Answer):
    """A remark that holds. `partition` is null for one of the whole run.

    `ratio`: the share of the last outcomes, or of its best speed that is missing; null where a kind
    has none. `wastes`: going on only makes more of it, so the partition is about to be paused.
    """

    kind: str
    since: AwareDatetime
    sentence: str
    partition: str | None
    ratio: float | None
    wastes: bool


class PartitionAnswer(Answer):
    """A partition's figures. `percent` rounds down; a speed is null where nothing measures.

    `ends_at_percent`: the share of its samples at which budget or deadline end it (`ends_by`); null
    where all fit, and while too little is known to say so. `work_left_s`: how long a paused one
    would take if it went on now; null for all others, and where that is not known.
    """

    id: int
    name: str
    class_name: str = Field(alias="class")
    state: PartitionState
    state_since: AwareDatetime
    reason: str
    intake: str
    is_over: bool
    percent: int
    samples: CountsAnswer
    goal_samples: int | None
    tokens: TokensAnswer
    reserved_tokens: int
    token_budget_tokens: int | None
    budget_reached: bool
    deadline_at: AwareDatetime | None
    ends_at_percent: int | None
    ends_by: EndsBy | None
    max_new_tokens: int
    own_concurrency_requests: int | None
    concurrency_requests: int | None
    in_flight_requests: int
    speed_tokens_per_s: float | None
    time_left_s: TimeLeftAnswer | None
    time_left_unknown_because: str | None
    work_left_s: float | None
    last_token_at: AwareDatetime | None
    sealed_at: AwareDatetime | None
    remarks: list[str]
    spark_tokens_per_s: list[float | None]


class PartitionsAnswer(Answer):
    partitions: list[PartitionAnswer]


class LoadAnswer(Answer):
    """What a server's counters said `at` a moment; null is what it does not tell, never 0.

    `source`: metrics, loads (its /v1/loads) or none. `trouble`: why the last look brought nothing.
    Ratios are 0 to 1; `retracted_requests` and first-token times are of the last ten minutes.
    """

    url: str
    at: AwareDatetime | None
    away_since: AwareDatetime | None
    trouble: str
    source: LoadSource
    version: str | None
    model_path: str | None
    started_at: AwareDatetime | None
    n_restarts: int
    n_ranks: int | None
    running_requests: int | None
    waiting_requests: int | None
    max_running_requests: int | None
    kv_capacity_tokens: int | None
    kv_used_tokens: int | None
    kv_reclaimable_tokens: int | None
    kv_free_tokens: int | None
    used_ratio: float | None
    tokens_per_s: float | None
    prefix_hit_ratio: float | None
    retracted_requests: int | None
    first_token_p50_s: float | None
    first_token_p99_s: float | None
    first_token_p50_is_more: bool
    first_token_p99_is_more: bool
    n_first_tokens: int | None
    recent_first_token_s: float | None
    progressed_at: AwareDatetime | None
    simulated_time_factor: float | None


class RunAnswer(Answer):
    """A run's figures `at` one moment, its partitions included; `needs_you` is for people."""

    id: int
    name: str
    state: RunState
    state_since: AwareDatetime
    reason: str
    is_served: bool
    at: AwareDatetime
    created_at: AwareDatetime | None
    heartbeat_at: AwareDatetime | None
    output_dir: str
    percent: int
    samples: CountsAnswer
    tokens: TokensAnswer
    token_budget_tokens: int | None
    deadline_at: AwareDatetime | None
    ends_at_percent: int | None
    ends_by: EndsBy | None
    in_flight_requests: int
    speed_tokens_per_s: float | None
    mean_hour_tokens_per_s: float | None
    best_tokens_per_s: float | None
    time_left_s: TimeLeftAnswer | None
    time_left_unknown_because: str | None
    decided_by_partition: str | None
    last_token_at: AwareDatetime | None
    conditions: list[ConditionAnswer]
    needs_you: list[str]
    servers: list[LoadAnswer]
    partitions: list[PartitionAnswer]


class EntryAnswer(Answer):
    id: int
    at: AwareDatetime
    who: str
    event: str
    detail: str
    partition: str | None


class ActivityAnswer(Answer):
    """Who did what when, newest first."""

    activity: list[EntryAnswer]


class ServerAnswer(Answer):
    """A server: what it said of itself at its last check (`facts`), and its load now.

    `id`, `checked_at` and `facts` are null and empty while no run has reached it.
    """

    id: int | None
    url: str
    facts: dict[str, Any]
    checked_at: AwareDatetime | None
    last_good_at: AwareDatetime | None
    load: LoadAnswer


class ServersAnswer(Answer):
    servers: list[ServerAnswer]


class ChartAnswer(Answer):
    """Speeds in equal buckets from `begin` to `end`; null where nothing was recorded.

    `concurrency_requests` is what was wanted in flight at the end of each bucket, `aways` are the
    stretches (begin, end) in which no server answered.
    """

    begin: AwareDatetime
    end: AwareDatetime
    bucket_s: float | None
    own_tokens_per_s: list[float | None]
    server_tokens_per_s: list[float | None]
    concurrency_requests: list[float | None]
    aways: list[tuple[AwareDatetime, AwareDatetime]]
