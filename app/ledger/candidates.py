"""Which samples of a partition may be claimed now: the next ones, or one that must be alone.

Owns the order of claiming and the rule for samples that the server died under. Invariant: while
such a sample runs alone, nothing else of its run is handed out; while one waits for that, neither.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, RowMapping, text

# After so many deaths of the server that it was in flight for, a sample runs alone.
ALONE_AFTER_DEATHS = 2

_CANDIDATE = (
    "SELECT id, position, record_index, replica, key, attempt, charged, server_deaths,"
    " prompt_tokens, token_offset, prompt_sha256, max_new_tokens, sampling_json, held_tokens, turn,"
    " CASE WHEN shard_id IS NULL THEN 0 ELSE output_tokens END AS previous_tokens"
    " FROM sample WHERE partition_id = :partition AND state = 'pending'"
    " AND claim_rank IS NOT NULL AND not_before_at_ms <= :now"
)
_NEXT = text(_CANDIDATE + " ORDER BY claim_rank, position LIMIT :n")
_NEXT_SUSPECT = text(
    _CANDIDATE
    + f" AND server_deaths >= {ALONE_AFTER_DEATHS} ORDER BY claim_rank, position LIMIT min(:n, 1)"
)
# One that waits holds the others up only if somebody may claim it: not in a paused partition, nor
# where no worker is, because the goal is reached or it is another partition's turn. The cross
# join keeps the order: partitions of the run, then the few suspects of each, from their index.
_SUSPECTS = text(
    "SELECT s.state, s.alone FROM partition p CROSS JOIN sample s"
    " WHERE p.run_id = :run AND s.partition_id = p.id"
    f" AND s.server_deaths >= {ALONE_AFTER_DEATHS} AND s.state IN ('pending', 'running')"
    " AND (s.state = 'running' OR (p.state = 'active' AND EXISTS (SELECT 1 FROM worker w"
    " WHERE w.partition_id = p.id AND w.state <> 'exited' AND w.desired = 'work')))"
)


def candidates(
    connection: Connection, orders: RowMapping, room: int, now_ms: int
) -> Sequence[RowMapping]:
    """Return the rows that may be claimed now: usually the next ones, or one that must be alone."""
    values = {"partition": orders["partition_id"], "now": now_ms, "n": room}
    suspects = connection.execute(_SUSPECTS, {"run": orders["run_id"]}).all()
    if any(row.state == "running" and row.alone for row in suspects):
        return []
    if any(row.state == "pending" for row in suspects):
        return _lone(connection, orders, values)
    return connection.execute(_NEXT, values).mappings().all()


def _lone(
    connection: Connection, orders: RowMapping, values: Mapping[str, object]
) -> Sequence[RowMapping]:
    """Return one sample that the server died under, if nothing else of the run is in flight."""
    running = connection.execute(
        text("SELECT sum(n_running) FROM partition WHERE run_id = :run"),
        {"run": orders["run_id"]},
    ).scalar_one()
    if running:
        return []
    return connection.execute(_NEXT_SUSPECT, values).mappings().all()
