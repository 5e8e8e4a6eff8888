"""Samples that run in nobody's name: put back at a start, before anything is claimed.

Called under the home's lock. Safe to repeat: what was put back is no stray any more.
"""

from sqlalchemy import text

from app.core.types import PartitionId
from app.ledger.db import Ledger
from app.ledger.repairs import rebuild


def put_back_strays(ledger: Ledger) -> dict[PartitionId, int]:
    """Put back what runs although no worker lives: a row changed by hand. Return how many where.

    Only after every dead worker is buried; otherwise it is theirs.
    """
    with ledger.write() as connection:
        found = connection.execute(
            text(
                "SELECT partition_id, count(*) AS n FROM sample WHERE state = 'running'"
                " GROUP BY partition_id"
            )
        ).all()
        if found:
            connection.execute(
                text(
                    "UPDATE sample SET state = 'pending', worker_id = NULL, alone = false,"
                    " claim_rank = CASE WHEN token_offset IS NULL THEN NULL"
                    " WHEN held_tokens > 0 THEN 0 ELSE 1 END WHERE state = 'running'"
                )
            )
    strays = {PartitionId(row.partition_id): int(row.n) for row in found}
    for partition_id in strays:
        rebuild(ledger, partition_id)
    return strays
