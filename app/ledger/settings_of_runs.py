"""What a submission changes in a run that exists: new partitions, other limits, ids made anew.

Owns statements that are used before the run goes on, while no worker of it lives; only partitions
are also added while it is at work. What people set live is `limits.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from app.clock import to_ms
from app.core.states import RunState
from app.core.types import PartitionId, RunId
from app.core.views import RunView
from app.errors import ConflictError
from app.ledger.activity import Deed, note
from app.ledger.db import Ledger
from app.ledger.orders import Change, Order, note_change
from app.ledger.runs import NewPartition, insert_partition
from app.ledger.turns import wait_for_ids


def add_partitions(
    ledger: Ledger, run_id: RunId, partitions: Sequence[NewPartition], now: datetime
) -> None:
    """Insert partitions that an existing run does not have yet; they begin as `scanning`."""
    with ledger.write() as connection:
        for partition in partitions:
            insert_partition(connection, run_id, partition, to_ms(now))


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a run becomes by new partitions: their rows, and its words and identity from then on."""

    partitions: Sequence[NewPartition]
    spec_json: str
    fingerprint_json: str


def grow(ledger: Ledger, run: RunView, growth: Growth, order: Order) -> None:
    """Add partitions to a run as it was read, in one transaction; a finished run goes on.

    ConflictError, and nothing changed, if its words or its state are no longer what they were.
    """
    state = RunState.RUNNING if run.state is RunState.FINISHED else run.state
    with ledger.write() as connection:
        moved = connection.execute(
            text(
                "UPDATE run SET spec_json = :spec, fingerprint_json = :fingerprint, state = :to,"
                " state_since_at_ms = CASE WHEN state = :to THEN state_since_at_ms ELSE :now END"
                " WHERE id = :id AND state = :was AND spec_json = :old_spec"
                " AND fingerprint_json = :old_fingerprint"
            ),
            {
                "spec": growth.spec_json,
                "fingerprint": growth.fingerprint_json,
                "to": state,
                "now": to_ms(order.now),
                "id": run.id,
                "was": run.state,
                "old_spec": run.spec_json,
                "old_fingerprint": run.fingerprint_json,
            },
        ).rowcount
        if moved != 1:
            raise ConflictError(
                f'run "{run.name}" changed at this very moment; nothing was added',
                hint="Add them again",
            )
        for partition in growth.partitions:
            insert_partition(connection, run.id, partition, to_ms(order.now))
        names = ", ".join(each.name for each in growth.partitions)
        deed = Deed(who=order.who, event="partitions added", detail=names, run_id=run.id)
        note(connection, deed, order.now)
        if state is not run.state:
            change = Change(target="run", what="state", old=run.state, new=state)
            note_change(connection, change, order, None)


def set_class(
    ledger: Ledger, partition_id: PartitionId, class_name: str, max_new_tokens: int
) -> None:
    """Let a partition belong to a class, with the answer limit that follows from it."""
    with ledger.write() as connection:
        connection.execute(
            text(
                "UPDATE partition SET class_name = :class, max_new_tokens = :limit WHERE id = :id"
            ),
            {"class": class_name, "limit": max_new_tokens, "id": partition_id},
        )


def set_prompts_path(ledger: Ledger, partition_id: PartitionId, prompts_path: str) -> None:
    """Note where the same prompts lie now."""
    with ledger.write() as connection:
        connection.execute(
            text("UPDATE partition SET prompts_path = :path WHERE id = :id"),
            {"path": prompts_path, "id": partition_id},
        )


def forget_tokens(ledger: Ledger, partition_id: PartitionId) -> int:
    """Take the prompt ids of what may still be sent back, because others are needed.

    Returns how many. Their place in the token file stays unused, and kept answers stay as they
    are. What has failed loses its ids too, so that a retry cannot send old ones.
    """
    with ledger.write() as connection:
        n = connection.execute(
            text(
                "UPDATE sample SET claim_rank = NULL, token_offset = NULL, prompt_tokens = NULL"
                " WHERE partition_id = :id AND token_offset IS NOT NULL"
                " AND state IN ('pending', 'failed', 'empty', 'suspect')"
            ),
            {"id": partition_id},
        ).rowcount
        wait_for_ids(connection, partition_id)
        connection.execute(
            text(
                "UPDATE partition SET n_tokenized = n_tokenized - :n, intake = CASE"
                " WHEN n_pending > 0 AND intake = 'tokenized' THEN 'scanned' ELSE intake END"
                " WHERE id = :id"
            ),
            {"n": n, "id": partition_id},
        )
    return n


def n_records(ledger: Ledger, partition_id: PartitionId) -> int:
    """Return how many records were taken in from the partition's prompt file."""
    with ledger.read() as connection:
        found: int | None = connection.execute(
            text(
                "SELECT record_index + 1 FROM sample WHERE partition_id = :id"
                " ORDER BY position DESC LIMIT 1"
            ),
            {"id": partition_id},
        ).scalar()
    return found or 0


def has_living_workers(ledger: Ledger, run_id: RunId) -> bool:
    with ledger.read() as connection:
        found = connection.execute(
            text(
                "SELECT 1 FROM worker w JOIN partition p ON p.id = w.partition_id"
                " WHERE p.run_id = :id AND w.state <> 'exited' LIMIT 1"
            ),
            {"id": run_id},
        ).first()
    return found is not None
