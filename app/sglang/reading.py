"""One answer of a server about its load, whichever route and version it came from.

Shape only; `metrics.py` and `loads.py` fill it. Invariant: what was not told is None or absent,
never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.core.loads import LoadSource


class Counter(StrEnum):
    """Counters of a reading. The names are our own: what they count is one thing in all versions.

    `HIT` and `MISSED` are of prefills (0.5.18), `CACHED` and `COMPUTED` too (0.5.9), in tokens;
    `CACHED_ENDED` and `PROMPT_ENDED` are counted when a request ends.
    """

    DECODED = "decoded tokens"
    COMPUTED = "computed prefill tokens"
    CACHED = "cached prefill tokens"
    MISSED = "missed prefill tokens"
    HIT = "hit prefill tokens"
    CACHED_ENDED = "cached tokens of ended requests"
    PROMPT_ENDED = "prompt tokens of ended requests"
    GENERATED_ENDED = "generated tokens of ended requests"
    ENDED = "ended requests"
    RETRACTED = "retracted requests"
    LOADS_PREFILL = "prefill tokens by /v1/loads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One answer. `throughput_tokens_per_s` is the server's own gauge, up to 30 s old.

    `first_tokens`: how many waited at most so long, by limit in seconds, since the server began.
    `progress` differs from that of the reading before if the scheduler has moved since.
    """

    source: LoadSource
    n_ranks: int | None = None
    version: str | None = None
    running_requests: int | None = None
    waiting_requests: int | None = None
    max_running_requests: int | None = None
    kv_capacity_tokens: int | None = None
    kv_used_tokens: int | None = None
    kv_reclaimable_tokens: int | None = None
    kv_free_tokens: int | None = None
    used_ratio: float | None = None
    throughput_tokens_per_s: float | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    first_tokens: Mapping[float, float] = field(default_factory=dict)
    progress: tuple[object, ...] = ()
