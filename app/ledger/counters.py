"""The counters of a partition: the one statement that moves them, and the proof that they are true.

Every function of this package that changes samples calls `move` in the same transaction.
Invariant: states sum to the total; received = kept + wasted + held. Kept are the tokens of all
valid lines, whatever their samples do now; held are those of checkpoints, without what is copied
from a valid line to be extended (`ledger/checkpoints.py`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from app.core.states import KEPT, SampleState, may_move
from app.core.types import PartitionId
from app.errors import LedgerError
from app.ledger.db import Ledger

TOKEN_COLUMNS = ("received_tokens", "kept_tokens", "wasted_tokens", "held_tokens")
MOVED_COLUMNS = (*TOKEN_COLUMNS, "n_waiting")
# Turns that wait, among the samples of a partition: they have no prompt yet.
WAITING = "state = 'pending' AND turn > 1 AND claim_rank IS NULL"


@dataclass(slots=True)
class Deltas:
    """What one transaction changes: samples per state, tokens per column, turns that wait."""

    states: Counter[SampleState] = field(default_factory=Counter)
    received_tokens: int = 0
    kept_tokens: int = 0
    wasted_tokens: int = 0
    held_tokens: int = 0
    n_waiting: int = 0

    def moved(self, source: SampleState, target: SampleState, n: int = 1) -> None:
        """Note that n samples went from one state to another, as the table of moves allows."""
        if n and not may_move(source, target):
            raise LedgerError(f"a sample cannot go from {source} to {target}; nothing was changed")
        self.states[source] -= n
        self.states[target] += n


def move(connection: Connection, partition_id: PartitionId, deltas: Deltas) -> None:
    """Add the deltas to the partition's counters."""
    changes: dict[str, int] = {f"n_{state}": n for state, n in deltas.states.items() if n}
    changes |= {name: value for name in MOVED_COLUMNS if (value := getattr(deltas, name))}
    if not changes:
        return
    assignments = ", ".join(f"{name} = {name} + :{name}" for name in changes)
    result = connection.execute(
        text(f"UPDATE partition SET {assignments} WHERE id = :id"),
        {**changes, "id": partition_id},
    )
    if result.rowcount != 1:
        raise LedgerError(f"partition {partition_id} is not in the ledger")


def recount(ledger: Ledger, partition_id: PartitionId) -> list[str]:
    """Compare the counters with the rows they count; return each difference in words."""
    with ledger.read() as connection:
        stored = (
            connection.execute(text("SELECT * FROM partition WHERE id = :id"), {"id": partition_id})
            .mappings()
            .one()
        )
        counted, in_samples, in_checkpoints = _count(connection, partition_id)
    problems = [
        f"{name}: counter {stored[name]}, rows {true}"
        for name, true in counted.items()
        if stored[name] != true
    ]
    if in_samples != in_checkpoints:
        problems.append(f"checkpoints hold {in_checkpoints} tokens, their samples say {in_samples}")
    balance = stored["kept_tokens"] + stored["wasted_tokens"] + stored["held_tokens"]
    if stored["received_tokens"] != balance:
        problems.append(
            f"received {stored['received_tokens']} is not kept + wasted + held = {balance}"
        )
    return problems


def _count(connection: Connection, partition_id: PartitionId) -> tuple[Mapping[str, int], int, int]:
    """Return the true counters, and what samples and checkpoints each say is held, copies too."""
    rows = connection.execute(
        text(
            "SELECT state, count(*) AS n, sum(held_tokens) AS held,"
            f" sum(CASE WHEN {WAITING} THEN 1 ELSE 0 END) AS waiting,"
            " sum(CASE WHEN shard_id IS NOT NULL THEN output_tokens ELSE 0 END) AS kept"
            " FROM sample WHERE partition_id = :id GROUP BY state"
        ),
        {"id": partition_id},
    ).all()
    by_state = {row.state: row for row in rows}
    counted = {
        f"n_{state}": (by_state[state].n if state in by_state else 0) for state in SampleState
    }
    counted["n_waiting"] = sum(row.waiting for row in rows)
    counted["kept_tokens"] = sum(row.kept or 0 for row in rows)
    checkpointed = connection.execute(
        text(
            "SELECT coalesce(sum(length(c.ids)) / 4, 0) AS in_all,"
            " coalesce(sum(CASE WHEN c.attempt = 0 THEN length(c.ids) END) / 4, 0) AS copied"
            " FROM checkpoint c JOIN sample s ON s.id = c.sample_id WHERE s.partition_id = :id"
        ),
        {"id": partition_id},
    ).one()
    counted["held_tokens"] = checkpointed.in_all - checkpointed.copied
    return counted, sum(row.held or 0 for row in rows), checkpointed.in_all


def kept_states() -> str:
    """Return the kept states as an SQL list."""
    return ", ".join(f"'{state}'" for state in sorted(KEPT))
