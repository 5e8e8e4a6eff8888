"""Claiming: pending samples become a worker's running ones, within goal and budget.

One immediate transaction: read what may be claimed, let `core/budget.py` decide how many, mark
them. Invariant: no claim takes used + reserved above a budget, and none happens for a worker that
is not to work. Continuations come before fresh samples, then input order.
"""

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from sqlalchemy import Connection, RowMapping, text

from app.clock import to_ms
from app.core.budget import Admission, Budget, admit, no_margin
from app.core.rids import RequestId
from app.core.states import SampleState
from app.core.types import Claim, PartitionId, SampleId, WorkerId
from app.errors import DisownedError
from app.ledger.candidates import ALONE_AFTER_DEATHS, candidates
from app.ledger.checkpoints import Held, load
from app.ledger.continuing import continued
from app.ledger.counters import Deltas, move
from app.ledger.db import Ledger
from app.seams import Seam, seam


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a worker asks for: up to `n` samples.

    `reserved_tokens` is what its running samples are still expected to make;
    `reservation(held, cap)` what a sample is that holds so many of at most so many tokens,
    `margin(reserved)` what is to stay free beside so many reserved tokens.
    `sampling` and `gen_id` decide whether a checkpoint may be continued.
    """

    worker_id: WorkerId
    n: int
    reserved_tokens: int
    reservation: Callable[[int, int], int]
    margin: Callable[[int], int] = no_margin
    gen_id: str
    sampling: Mapping[str, object] = field(default_factory=dict)


def claim(ledger: Ledger, wish: Wish, now: datetime, random: Random) -> list[Claim]:
    """Claim up to `wish.n` samples; fewer where goal, budget or the input ends.

    Raises DisownedError if the ledger no longer knows the worker as living.
    """
    now_ms = to_ms(now)
    with ledger.write() as connection:
        orders = _orders(connection, wish.worker_id)
        if orders is None:
            raise DisownedError(f"worker {wish.worker_id} is no longer in the ledger")
        if orders["desired"] != "work" or orders["state"] != "active":
            return []
        partition_id = PartitionId(orders["partition_id"])
        room = _goal_room(orders, wish.n)
        rows = candidates(connection, orders, room, now_ms)
        admission = _admit(connection, orders, rows, wish)
        deltas = Deltas()
        claims = _mark(connection, rows[: admission.n], orders, wish, random)
        claims = [
            continued(connection, each, wish.gen_id, wish.sampling, deltas) for each in claims
        ]
        deltas.moved(SampleState.PENDING, SampleState.RUNNING, len(claims))
        move(connection, partition_id, deltas)
        connection.execute(
            text(
                "UPDATE partition SET reserved_tokens = :reserved, budget_reached = :reached,"
                # New answers will stand in shards again: the output is to be sealed anew.
                " sealed_at_ms = CASE WHEN :n > 0 THEN NULL ELSE sealed_at_ms END WHERE id = :id"
            ),
            {
                # What starts over is no longer held: from now on it is expected once more.
                "reserved": admission.reserved_tokens + deltas.wasted_tokens,
                "reached": admission.reached,
                "n": len(claims),
                "id": partition_id,
            },
        )
        seam(Seam.CLAIM_BEFORE_COMMIT)
    seam(Seam.CLAIM_COMMITTED)
    return claims


def _orders(connection: Connection, worker_id: WorkerId) -> RowMapping | None:
    return (
        connection.execute(
            text(
                "SELECT w.desired, p.id AS partition_id, p.run_id, p.state, p.token_budget,"
                " p.goal_samples, p.max_new_tokens AS cap_tokens,"
                " p.kept_tokens + p.held_tokens AS used_tokens,"
                " p.n_ok + p.n_truncated + p.n_empty + p.n_suspect + p.n_running AS n_taken,"
                " r.token_budget AS run_budget, r.state AS run_state"
                " FROM worker w JOIN partition p ON p.id = w.partition_id"
                " JOIN run r ON r.id = p.run_id WHERE w.id = :id AND w.state <> 'exited'"
            ),
            {"id": worker_id},
        )
        .mappings()
        .first()
    )


def _goal_room(orders: RowMapping, wanted: int) -> int:
    if orders["run_state"] != "running":
        return 0
    if orders["goal_samples"] is None:
        return wanted
    left: int = orders["goal_samples"] - orders["n_taken"]
    return max(0, min(wanted, left))


def _admit(
    connection: Connection, orders: RowMapping, rows: Sequence[RowMapping], wish: Wish
) -> Admission:
    """Say how many of the rows, from the first on, every budget has room for."""
    return admit(
        budgets=_budgets(connection, orders),
        reserved_tokens=wish.reserved_tokens,
        needs=(
            wish.reservation(row["held_tokens"], row["max_new_tokens"] or orders["cap_tokens"])
            for row in rows
        ),
        margin=wish.margin,
    )


def _budgets(connection: Connection, orders: RowMapping) -> list[Budget]:
    """Return the budgets that bind the partition: its own and its run's.

    Other partitions' reservations are as of their last tick or claim.
    """
    budgets: list[Budget] = []
    if orders["token_budget"] is not None:
        budgets.append(Budget(tokens=orders["token_budget"], used_tokens=orders["used_tokens"]))
    if orders["run_budget"] is not None:
        used_tokens, reserved_by_others = connection.execute(
            text(
                "SELECT sum(kept_tokens + held_tokens), sum(CASE WHEN id = :id THEN 0"
                " ELSE reserved_tokens END) FROM partition WHERE run_id = :run"
            ),
            {"run": orders["run_id"], "id": orders["partition_id"]},
        ).one()
        budgets.append(
            Budget(
                tokens=orders["run_budget"],
                used_tokens=used_tokens,
                reserved_by_others=reserved_by_others,
            )
        )
    return budgets


def _mark(
    connection: Connection,
    rows: Sequence[RowMapping],
    orders: RowMapping,
    wish: Wish,
    random: Random,
) -> list[Claim]:
    """Make the rows the worker's running samples; DisownedError if one is no longer pending."""
    if not rows:
        return []
    alone = any(row["server_deaths"] >= ALONE_AFTER_DEATHS for row in rows)
    salts = [random.getrandbits(32) for _ in rows]
    result = connection.execute(
        text(
            "UPDATE sample SET state = 'running', worker_id = :worker, attempt = attempt + 1,"
            " rid_salt = :salt, alone = :alone WHERE id = :id AND state = 'pending'"
        ),
        [
            {"worker": wish.worker_id, "salt": salt, "alone": alone, "id": row["id"]}
            for row, salt in zip(rows, salts, strict=True)
        ],
    )
    if result.rowcount != len(rows):
        raise DisownedError(f"samples of worker {wish.worker_id} were taken by somebody else")
    return [_claim_of(connection, row, orders, salt) for row, salt in zip(rows, salts, strict=True)]


def _claim_of(connection: Connection, row: RowMapping, orders: RowMapping, salt: int) -> Claim:
    attempt = row["attempt"] + 1
    rid = RequestId(
        run_id=orders["run_id"],
        partition_id=orders["partition_id"],
        sample_id=row["id"],
        attempt=attempt,
        salt=salt,
    )
    held = load(connection, row["id"]) if row["held_tokens"] else Held(array("I"), (), 0)
    return Claim(
        sample_id=SampleId(row["id"]),
        position=row["position"],
        index=row["record_index"],
        replica=row["replica"],
        turn=row["turn"],
        key=row["key"],
        attempt=attempt,
        charged=row["charged"],
        server_deaths=row["server_deaths"],
        alone=row["server_deaths"] >= ALONE_AFTER_DEATHS,
        rid=str(rid),
        prompt_tokens=row["prompt_tokens"],
        token_offset=row["token_offset"],
        prompt_sha256=row["prompt_sha256"],
        max_new_tokens=row["max_new_tokens"] or orders["cap_tokens"],
        has_own_limit=row["max_new_tokens"] is not None,
        sampling=json.loads(row["sampling_json"]) if row["sampling_json"] else {},
        held=held.ids,
        segments=held.segments,
        previous_tokens=row["previous_tokens"],
        line_tokens=held.line_tokens,
    )
