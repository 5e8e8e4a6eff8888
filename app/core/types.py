"""The values that the floors hand to each other: ids, claims, the end of an attempt, outcomes.

Owns no behaviour beyond trivial sums. Tables never leave `ledger/`, protocol objects never leave
`sglang/`; what crosses is defined here, frozen. Token ids travel as `array('I')` (uint32).
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType

from app.core.states import SampleState

RunId = NewType("RunId", int)
PartitionId = NewType("PartitionId", int)
SampleId = NewType("SampleId", int)
WorkerId = NewType("WorkerId", int)
ServerId = NewType("ServerId", int)
ShardId = NewType("ShardId", int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Which request made the answer's tokens from `from_token` on."""

    from_token: int
    rid: str
    server: str
    gen_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sample in a worker's hands: everything that sending it needs.

    `attempt` counts claims of the sample from 1, `charged` the attempts that were its own fault.
    `held` are the answer's tokens that earlier attempts left, empty for a fresh start. `alone`:
    the server died twice under it, so nothing else of the run is in flight beside it.
    `previous_tokens` are those of an older line (retry, extend) that this attempt will replace;
    `line_tokens` of `held` are its own, so kept. `has_own_limit`: the limit is not the partition's.
    """

    sample_id: SampleId
    position: int
    index: int
    replica: int
    turn: int = 1
    key: str
    attempt: int
    charged: int
    server_deaths: int
    alone: bool = False
    rid: str
    prompt_tokens: int
    token_offset: int
    prompt_sha256: str
    max_new_tokens: int
    sampling: Mapping[str, object] = field(default_factory=dict)
    held: array[int] = field(default_factory=lambda: array("I"))
    segments: tuple[Segment, ...] = ()
    previous_tokens: int = 0
    line_tokens: int = 0
    has_own_limit: bool = False


class EndKind(StrEnum):
    """How an attempt ended, as the client saw it."""

    FINISHED = "finished"  # a terminal event with a finish reason of any type, even abort
    ERROR = "error"  # an error object or an HTTP status that speaks of this request
    BUSY = "busy"  # 503 or 429: queue full
    REFUSED = "refused"  # no connection was made
    CUT = "cut"  # the connection ended before the terminal event
    TIMEOUT = "timeout"  # request_timeout_s passed
    WITHDRAWN = "withdrawn"  # we aborted it: pause, stop, drain timeout
    BROKEN = "broken"  # the body is not what the protocol says: a gap, no JSON, no count
    NO_IDS = "no ids"  # an answer without output token ids, or with others than integers


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """The end of one attempt. `ids` are its own new tokens that are safe to keep or continue.

    `finish_reason` is the raw JSON value (object, string or None); `reported_prompt_tokens` is
    what the server says it was prompted with, None if it said nothing.
    """

    kind: EndKind
    ids: array[int] = field(default_factory=lambda: array("I"))
    text: str | None = None
    finish_reason: object = None
    status: int | None = None
    message: str = ""
    retry_after_s: float | None = None
    reported_prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The answer counts: its line is written and the sample gets a kept state."""

    state: SampleState
    finish_reason: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PutBack:
    """Back to pending. `held` tokens stay for a continuation unless `start_over`."""

    charged: bool
    reason: str
    delay_s: float = 0.0
    start_over: bool = False
    server_died: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """Tried and given up; the reason holds the server's words."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Not this sample's fault: the server or the configuration serves nobody (401, 404, no ids).

    The sample goes back uncharged, the worker stops with this reason, its partition is paused.
    """

    reason: str


Outcome = Keep | PutBack | Fail | Halt


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server says of itself. None: it did not say."""

    version: str | None = None
    model_path: str | None = None
    tokenizer_path: str | None = None
    weight_version: str | None = None
    context_tokens: int | None = None
    max_prompt_tokens: int | None = None
    kv_capacity_tokens: int | None = None
    max_running: int | None = None
    vocabulary_size: int | None = None
    reserved_tokens: int = 0
    incremental: bool = False
    has_tokenizer: bool = True
    simulated_time_factor: float | None = None
    answer_settings: Mapping[str, object] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many samples of a partition are in each state."""

    pending: int = 0
    running: int = 0
    ok: int = 0
    truncated: int = 0
    empty: int = 0
    suspect: int = 0
    failed: int = 0
    rejected: int = 0

    @property
    def kept(self) -> int:
        return self.ok + self.truncated + self.empty + self.suspect

    @property
    def total(self) -> int:
        return self.pending + self.running + self.kept + self.failed + self.rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Output tokens of a partition: received is always kept + wasted + held."""

    received: int = 0
    kept: int = 0
    wasted: int = 0
    held: int = 0

    @property
    def used(self) -> int:
        """What counts against a budget: tokens that are, or will be, part of an answer."""
        return self.kept + self.held


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What one running sample has gained since the last tick; `ids` packed uint32."""

    sample_id: SampleId
    attempt: int
    from_token: int
    rid: str
    server: str
    gen_id: str
    ids: bytes

    @property
    def n_tokens(self) -> int:
        return len(self.ids) // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where an answer's line stands in its shard."""

    shard_id: ShardId
    offset: int
    n_bytes: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """One attempt that ended. `unsaved` are its tokens that no checkpoint holds yet.

    `held_tokens` is what checkpoints hold of the sample, earlier attempts included, and
    `line_tokens` of them are the valid line's own. `line` stands with a Keep and only with it.
    The times count from when the request was sent; None where it did not make the whole answer.
    """

    sample_id: SampleId
    attempt: int
    outcome: Keep | PutBack | Fail
    held_tokens: int
    previous_tokens: int = 0
    line_tokens: int = 0
    unsaved: Gain | None = None
    line: Line | None = None
    prompt_tokens: int | None = None
    first_token_ms: int | None = None
    latency_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What a worker tells the ledger once per tick, all in one transaction."""

    worker_id: WorkerId
    partition_id: PartitionId
    gains: tuple[Gain, ...] = ()
    settled: tuple[Settled, ...] = ()
    shard_id: ShardId | None = None
    shard_bytes: int = 0
    shard_inode: int = 0
    state: str = "working"
    notice: str = ""
    in_flight: int = 0
    reserved_tokens: int = 0
    last_token_at: datetime | None = None
    waiting_since: datetime | None = None
    lease_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the service wants of a worker: `work`, `drain` or `stop`, its shares, and its limit."""

    desired: str
    shares: Mapping[str, int]
    max_new_tokens: int = 0
