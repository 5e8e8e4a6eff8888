"""What a server's counters say of it at one moment, as a value for pages, API and recorder.

Shape only; `sglang/metrics.py` reads the counters, `poller/` turns readings into this. Invariant:
what the server does not tell is None, never 0, and `at` is the moment of the last good answer.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class LoadSource(StrEnum):
    """Where the figures come from: the server's metrics, its /v1/loads, or nowhere."""

    METRICS = "metrics"
    LOADS = "loads"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLoad:
    """One server. Ratios are 0..1; those over ten minutes come from counters, not from gauges.

    `at`: last good answer of its counters; `away_since`: since when it has not answered at all,
    None while it does. `trouble`: why the last poll brought no figures, in words, "" if it did.
    `used_ratio` is what the server itself calls its use, without what it could reclaim.
    `n_ranks` are the data-parallel ones that are added up. `started_at`: when a restart was seen.
    `recent_first_token_s`: the median of the last two minutes.
    `first_token_p99_is_more`: it was longer than that, beyond what the server's buckets tell.
    `retracted_requests` were thrown out of the batch in the last ten minutes. `progressed_at`: when
    a counter of its tokens last moved, whoever's request it was. `n_restarts`: seen by this poller.
    `simulated_time_factor`: None for a real server; a simulated one says how fast its time runs.
    """

    url: str
    at: datetime | None = None
    away_since: datetime | None = None
    trouble: str = ""
    source: LoadSource = LoadSource.NONE
    version: str | None = None
    model_path: str | None = None
    started_at: datetime | None = None
    n_restarts: int = 0
    n_ranks: int | None = None
    running_requests: int | None = None
    waiting_requests: int | None = None
    max_running_requests: int | None = None
    kv_capacity_tokens: int | None = None
    kv_used_tokens: int | None = None
    kv_reclaimable_tokens: int | None = None
    kv_free_tokens: int | None = None
    used_ratio: float | None = None
    tokens_per_s: float | None = None
    prefix_hit_ratio: float | None = None
    retracted_requests: int | None = None
    first_token_p50_s: float | None = None
    first_token_p99_s: float | None = None
    first_token_p50_is_more: bool = False
    first_token_p99_is_more: bool = False
    n_first_tokens: int | None = None
    recent_first_token_s: float | None = None
    progressed_at: datetime | None = None
    simulated_time_factor: float | None = None
