"""Runs and their partitions: created, read, and moved from state to state.

Every move is one guarded statement whose row count is looked at; a move that the table of
`core/states.py` does not know is a ConflictError that names both states.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from app.clock import to_ms
from app.core.states import RUN_MOVES, RunState, SampleState
from app.core.types import PartitionId, RunId
from app.core.views import PartitionView, RunView
from app.errors import ConflictError, NotFoundError
from app.ledger.activity import Deed, note
from app.ledger.counters import TOKEN_COLUMNS
from app.ledger.db import Ledger
from app.ledger.row_views import partition_view, run_view

_OF_PARTITION = ("measure", "sample", "shard", "worker")
_OF_RUN = ("partition", "snapshot", "activity")
_ENTRIES = "(SELECT id FROM activity WHERE run_id = :id)"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    name: str
    spec_json: str
    output_dir: str
    token_budget: int | None
    fingerprint_json: str
    gen_id: str
    deadline_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartition:
    name: str
    class_name: str
    prompts_path: str
    max_new_tokens: int
    own_concurrency: int | None
    token_budget: int | None
    goal_samples: int | None
    deadline_at: datetime | None = None


def create_run(
    ledger: Ledger, run: NewRun, partitions: Sequence[NewPartition], now: datetime
) -> RunId:
    """Insert a run with its partitions, running, all in one transaction."""
    now_ms = to_ms(now)
    with ledger.write() as connection:
        run_id = connection.execute(
            text(
                "INSERT INTO run (name, state, state_since_at_ms, reason, spec_json, output_dir,"
                " token_budget, fingerprint_json, gen_id, created_at_ms, deadline_at_ms)"
                " VALUES (:name, 'running', :now, '', :spec_json, :output_dir, :token_budget,"
                " :fingerprint_json, :gen_id, :now, :deadline) RETURNING id"
            ),
            {
                "name": run.name,
                "spec_json": run.spec_json,
                "output_dir": run.output_dir,
                "token_budget": run.token_budget,
                "fingerprint_json": run.fingerprint_json,
                "gen_id": run.gen_id,
                "now": now_ms,
                "deadline": _ms(run.deadline_at),
            },
        ).scalar_one()
        for partition in partitions:
            insert_partition(connection, run_id, partition, now_ms)
        detail = f"{len(partitions)} partitions into {run.output_dir}"
        note(
            connection, Deed(who="operator", event="run created", detail=detail, run_id=run_id), now
        )
    return RunId(run_id)


def insert_partition(
    connection: Connection, run_id: int, partition: NewPartition, now_ms: int
) -> None:
    zeros = [*(f"n_{state}" for state in SampleState), *TOKEN_COLUMNS]
    zeros += ["reserved_tokens", "n_tokenized", "token_file_tokens"]
    connection.execute(
        text(
            "INSERT INTO partition (run_id, name, class_name, state, state_since_at_ms, reason,"
            " prompts_path, intake, own_concurrency, token_budget, goal_samples, max_new_tokens,"
            f" deadline_at_ms, budget_reached, {', '.join(zeros)}) VALUES (:run_id, :name,"
            " :class_name, 'active', :now, '', :prompts_path, 'scanning', :own_concurrency,"
            " :token_budget, :goal_samples, :max_new_tokens, :deadline, false,"
            f" {', '.join('0' for _ in zeros)})"
        ),
        {
            "run_id": run_id,
            "now": now_ms,
            "name": partition.name,
            "class_name": partition.class_name,
            "prompts_path": partition.prompts_path,
            "max_new_tokens": partition.max_new_tokens,
            "own_concurrency": partition.own_concurrency,
            "token_budget": partition.token_budget,
            "goal_samples": partition.goal_samples,
            "deadline": _ms(partition.deadline_at),
        },
    )


def delete_run(ledger: Ledger, run_id: RunId) -> None:
    """Remove a run that never began: its prompts turned out to be unusable during the scan."""
    with ledger.write() as connection:
        begun = connection.execute(
            text("SELECT coalesce(sum(received_tokens), 0) FROM partition WHERE run_id = :id"),
            {"id": run_id},
        ).scalar_one()
        if begun:
            raise ConflictError(f"run {run_id} has answers and is not removed")
        inside = "(SELECT id FROM partition WHERE run_id = :id)"
        workers = f"(SELECT id FROM worker WHERE partition_id IN {inside})"
        statements = [
            *(f"DELETE FROM {each} WHERE worker_id IN {workers}" for each in ("attempt", "share")),
            *(f"DELETE FROM {each} WHERE partition_id IN {inside}" for each in _OF_PARTITION),
            f"DELETE FROM delivery WHERE activity_id IN {_ENTRIES}",
            *(f"DELETE FROM {each} WHERE run_id = :id" for each in _OF_RUN),
            "DELETE FROM run WHERE id = :id",
        ]
        for statement in statements:
            connection.execute(text(statement), {"id": run_id})


def get_run(ledger: Ledger, run_id: RunId) -> RunView:
    with ledger.read() as connection:
        row = connection.execute(text("SELECT * FROM run WHERE id = :id"), {"id": run_id})
        found = row.mappings().first()
    if found is None:
        raise NotFoundError(f"there is no run {run_id}")
    return run_view(found)


def list_runs(ledger: Ledger) -> list[RunView]:
    """Return all runs, newest first."""
    with ledger.read() as connection:
        rows = connection.execute(text("SELECT * FROM run ORDER BY id DESC")).mappings()
        return [run_view(row) for row in rows]


def move_run(ledger: Ledger, run_id: RunId, event: str, deed: Deed, now: datetime) -> RunState:
    """Move the run by the event; ConflictError if its state does not allow it.

    `deed.detail` becomes the run's reason.
    """
    sources = [state for state, happened in RUN_MOVES if happened == event]
    with ledger.write() as connection:
        state = connection.execute(
            text("SELECT state FROM run WHERE id = :id"), {"id": run_id}
        ).scalar()
        if state is None:
            raise NotFoundError(f"there is no run {run_id}")
        if state not in sources:
            raise ConflictError(f"run {run_id} is {state}; {event} is not possible now")
        target = RUN_MOVES[RunState(state), event]
        connection.execute(
            text(
                "UPDATE run SET state = :to, state_since_at_ms = :now, reason = :why WHERE id = :id"
            ),
            {"to": target, "now": to_ms(now), "why": deed.detail, "id": run_id},
        )
        note(connection, deed, now)
    return target


def set_identity(
    ledger: Ledger, run_id: RunId, *, fingerprint_json: str, gen_id: str, spec_json: str
) -> None:
    """Store what the answers of the run depend on from now on."""
    with ledger.write() as connection:
        connection.execute(
            text(
                "UPDATE run SET fingerprint_json = :fingerprint, gen_id = :gen_id,"
                " spec_json = :spec WHERE id = :id"
            ),
            {
                "fingerprint": fingerprint_json,
                "gen_id": gen_id,
                "spec": spec_json,
                "id": run_id,
            },
        )


def partitions_of(ledger: Ledger, run_id: RunId) -> list[PartitionView]:
    """Return the run's partitions in the order in which they were created."""
    with ledger.read() as connection:
        rows = connection.execute(
            text("SELECT * FROM partition WHERE run_id = :id ORDER BY id"), {"id": run_id}
        )
        return [partition_view(row) for row in rows.mappings()]


def get_partition(ledger: Ledger, partition_id: PartitionId) -> PartitionView:
    with ledger.read() as connection:
        rows = connection.execute(
            text("SELECT * FROM partition WHERE id = :id"), {"id": partition_id}
        )
        found = rows.mappings().first()
    if found is None:
        raise NotFoundError(f"there is no partition {partition_id}")
    return partition_view(found)


def _ms(at: datetime | None) -> int | None:
    return None if at is None else to_ms(at)
