"""The ledger's tables. Never handed out: functions of this package return core types.

Owns columns, check constraints and indexes (each named for its reader). Moments are integer
milliseconds since 1970 (`_at_ms`). Counters on `partition` are moved only inside the transactions
of this package, and `recount` proves them.
"""

from sqlalchemy import CheckConstraint, Column, Index, LargeBinary, MetaData, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from app.core.states import PartitionState, RunState, SampleState

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(SQLModel):
    metadata = MetaData(naming_convention=NAMING)


def _one_of(column: str, values: type[SampleState | PartitionState | RunState]) -> CheckConstraint:
    names = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({names})", name=f"{column}_known")


def _partial(name: str, condition: str, *columns: str) -> Index:
    return Index(name, *columns, sqlite_where=text(condition), postgresql_where=text(condition))


class RunRow(Base, table=True):
    __tablename__ = "run"
    __table_args__ = (_one_of("state", RunState), UniqueConstraint("name"))

    id: int | None = Field(default=None, primary_key=True)
    name: str
    state: str
    state_since_at_ms: int
    reason: str = ""
    spec_json: str
    output_dir: str
    token_budget: int | None = None
    fingerprint_json: str = "{}"
    gen_id: str = ""
    created_at_ms: int
    deadline_at_ms: int | None = None


class PartitionRow(Base, table=True):
    __tablename__ = "partition"
    __table_args__ = (
        _one_of("state", PartitionState),
        UniqueConstraint("run_id", "name"),
        CheckConstraint(
            "min(n_pending, n_running, n_ok, n_truncated, n_empty, n_suspect, n_failed, n_rejected,"
            " received_tokens, kept_tokens, wasted_tokens, held_tokens) >= 0",
            name="counters_not_negative",
        ),
    )

    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    name: str
    class_name: str
    state: str
    state_since_at_ms: int
    reason: str = ""
    prompts_path: str
    intake: str = "scanning"  # scanning, scanned, tokenized
    own_concurrency: int | None = None
    token_budget: int | None = None
    goal_samples: int | None = None
    max_new_tokens: int
    n_pending: int = 0
    n_running: int = 0
    n_ok: int = 0
    n_truncated: int = 0
    n_empty: int = 0
    n_suspect: int = 0
    n_failed: int = 0
    n_rejected: int = 0
    received_tokens: int = 0
    kept_tokens: int = 0
    wasted_tokens: int = 0
    held_tokens: int = 0
    reserved_tokens: int = 0
    n_tokenized: int = 0
    token_file_tokens: int = 0
    budget_reached: bool = False
    sealed_at_ms: int | None = None
    deadline_at_ms: int | None = None
    # of the pending ones: turns that wait for an earlier one
    n_waiting: int = Field(default=0, sa_column_kwargs={"server_default": "0"})


class SampleRow(Base, table=True):
    __tablename__ = "sample"
    __table_args__ = (
        _one_of("state", SampleState),
        UniqueConstraint("partition_id", "position"),
        # Pending, tokenized samples in the order of claiming: continuations, then input order.
        _partial(
            "ix_sample_claim",
            "state = 'pending' AND claim_rank IS NOT NULL",
            "partition_id",
            "claim_rank",
            "position",
        ),
        _partial("ix_sample_running", "state = 'running'", "worker_id"),
        _partial(
            "ix_sample_failures",
            "state IN ('failed', 'rejected', 'empty', 'suspect')",
            "partition_id",
            "state",
            "reason",
        ),
        # The latest answers, for their lengths. The list stands as `kept_states()` writes it.
        _partial(
            "ix_sample_kept",
            "state IN ('empty', 'ok', 'suspect', 'truncated')",
            "partition_id",
            "position",
        ),
        _partial(
            "ix_sample_suspected",
            "server_deaths >= 2 AND state IN ('pending', 'running')",
            "partition_id",
        ),
        Index("ix_sample_key", "partition_id", "key"),  # the search for a sample by its id
        # Turns whose next one waits for them, and those of them that are over.
        _partial("ix_sample_awaited", "awaited", "partition_id", "position"),
        _partial(
            "ix_sample_due",
            "awaited AND state NOT IN ('pending', 'running')",
            "partition_id",
            "position",
        ),
    )

    id: int | None = Field(default=None, primary_key=True)
    partition_id: int = Field(foreign_key="partition.id")
    position: int
    record_index: int
    replica: int = 0
    key: str
    state: str
    claim_rank: int | None = None  # 0 continuation, 1 fresh; NULL until tokenized
    prompt_sha256: str
    prompt_tokens: int | None = None
    token_offset: int | None = None
    max_new_tokens: int | None = None
    sampling_json: str | None = None
    worker_id: int | None = None
    attempt: int = 0
    charged: int = 0
    server_deaths: int = 0
    alone: bool = False
    rid_salt: int = 0
    not_before_at_ms: int = 0
    held_tokens: int = 0
    output_tokens: int = 0
    shard_id: int | None = None
    line_offset: int | None = None
    line_bytes: int | None = None
    finish_reason: str | None = None
    flags: str | None = None
    reason: str | None = None
    # Of a conversation that is asked turn by turn: the next turn stands at the next position.
    turn: int = Field(default=1, sa_column_kwargs={"server_default": "1"})
    awaited: bool = Field(default=False, sa_column_kwargs={"server_default": "0"})


class CheckpointRow(Base, table=True):
    __tablename__ = "checkpoint"

    sample_id: int = Field(foreign_key="sample.id", primary_key=True)
    from_token: int = Field(primary_key=True)
    attempt: int
    rid: str
    server: str
    gen_id: str
    ids: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class AttemptRow(Base, table=True):
    """History of attempts that kept nothing: failed, lost, put back charged. Append-only."""

    __tablename__ = "attempt"

    id: int | None = Field(default=None, primary_key=True)
    sample_id: int = Field(index=True)
    attempt: int
    worker_id: int
    at_ms: int
    charged: bool
    tokens: int = 0
    reason: str


class WorkerRow(Base, table=True):
    """One life of one worker process; the row is the lease over its running samples."""

    __tablename__ = "worker"
    __table_args__ = (
        _partial("ix_worker_living", "state <> 'exited'", "partition_id"),
        {"sqlite_autoincrement": True},  # ids are never used twice
    )

    id: int | None = Field(default=None, primary_key=True)
    partition_id: int = Field(foreign_key="partition.id")
    pid: int = 0
    state: str = "starting"  # starting, working, waiting, draining, exited
    desired: str = "work"  # work, drain, stop
    lease_expires_at_ms: int = 0
    started_at_ms: int = 0
    ended_at_ms: int | None = None
    exit_reason: str = ""
    notice: str = ""
    in_flight: int = 0
    received_tokens: int = 0
    last_token_at_ms: int | None = None
    waiting_since_at_ms: int | None = None


class ServerRow(Base, table=True):
    __tablename__ = "server"

    id: int | None = Field(default=None, primary_key=True)
    url: str = Field(unique=True)
    facts_json: str = "{}"
    checked_at_ms: int | None = None
    last_good_at_ms: int | None = None


class ShareRow(Base, table=True):
    """How many requests a worker may keep in flight on a server."""

    __tablename__ = "share"

    worker_id: int = Field(foreign_key="worker.id", primary_key=True)
    server_id: int = Field(foreign_key="server.id", primary_key=True)
    n: int


class ShardRow(Base, table=True):
    """A file of answer lines: a worker's shard, or a partition's sealed output."""

    __tablename__ = "shard"

    id: int | None = Field(default=None, primary_key=True)
    partition_id: int = Field(foreign_key="partition.id", index=True)
    worker_id: int | None = None
    kind: str = "shard"  # shard, sealed
    path: str
    committed_bytes: int = 0
    inode: int = 0
    removed_at_ms: int | None = None


class SnapshotRow(Base, table=True):
    """What the run's figures were at one moment, the shown estimate included."""

    __tablename__ = "snapshot"
    __table_args__ = (Index("ix_snapshot_series", "run_id", "at_ms"),)

    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    at_ms: int
    figures_json: str


class ActivityRow(Base, table=True):
    """Who did what when, old and new; operator and system alike."""

    __tablename__ = "activity"
    __table_args__ = (Index("ix_activity_list", "run_id", "id"),)

    id: int | None = Field(default=None, primary_key=True)
    run_id: int | None = None
    partition_id: int | None = None
    at_ms: int
    who: str
    event: str
    detail: str = ""


class DeliveryRow(Base, table=True):
    """An activity entry on its way to somebody outside: one row per entry and target."""

    __tablename__ = "delivery"
    __table_args__ = (
        UniqueConstraint("activity_id", "target"),
        _partial("ix_delivery_waiting", "state = 'waiting'", "next_try_at_ms"),
    )

    id: int | None = Field(default=None, primary_key=True)
    activity_id: int = Field(foreign_key="activity.id")
    target: str  # webhook, command
    state: str = "waiting"  # waiting, sent, given up
    n_tries: int = 0
    next_try_at_ms: int = 0
    said: str = ""


class MeasureRow(Base, table=True):
    """How many answers of an hour fell into a bucket of a measure, and the sum of their values."""

    __tablename__ = "measure"
    __table_args__ = ({"sqlite_with_rowid": False},)  # it is read by its key and nothing else

    partition_id: int = Field(foreign_key="partition.id", primary_key=True)
    kind: str = Field(primary_key=True)  # of core/spread.py
    hour_at_ms: int = Field(primary_key=True)
    bucket: int = Field(primary_key=True)
    n: int
    total: int
