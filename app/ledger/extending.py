"""Truncated answers that go on: the limit is raised, then each answer becomes its own checkpoint.

Two kinds of transactions. The first raises the partition's limit and gives every sample that the
server's context bounds a limit of its own, as intake does. Each further one moves a batch of
samples from truncated to pending, opens partition and run again, and may be the last: what was
moved goes on, and the order repeated finds the rest. A sample is moved only if its valid line
stands where it was read. Invariant: the old line stays valid, so kept, held and used do not move.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, RowMapping, text

from app.core.spec import LengthPolicy
from app.core.states import SampleState
from app.core.types import PartitionId, SampleId, Segment, ShardId
from app.ledger import checkpoints
from app.ledger.counters import Deltas, move
from app.ledger.db import Ledger
from app.ledger.orders import Change, Order, note_change, open_run
from app.ledger.shards import LinePlace
from app.ledger.turns import wait_again
from app.seams import Seam, seam


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The new limit, and what prompt and answer may take together on every server (None: any)."""

    limit_tokens: int
    usable_tokens: int | None
    policy: LengthPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A truncated sample, and its valid line's place. `own_limit_tokens` None: the partition's."""

    sample_id: SampleId
    position: int
    key: str
    prompt_tokens: int
    prompt_sha256: str
    output_tokens: int
    own_limit_tokens: int | None
    flags: tuple[str, ...]
    sampling: Mapping[str, object] = field(default_factory=dict)
    place: LinePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """A sample whose answer goes on: the first tokens of its line, packed uint32 per segment."""

    cut: Cut
    pieces: Sequence[tuple[Segment, bytes]]

    @property
    def held_tokens(self) -> int:
        return sum(len(ids) for _, ids in self.pieces) // 4


def raise_limit(
    ledger: Ledger, order: Order, partition_id: PartitionId, room: Room
) -> tuple[Change | None, int]:
    """Raise the partition's limit; return the change, and how many prompts leave less room.

    None: it is that high already, or higher. A sample's own limit that equals the partition's old
    one rises too.
    """
    with ledger.write() as connection:
        row = (
            connection.execute(
                text("SELECT name, max_new_tokens FROM partition WHERE id = :id"),
                {"id": partition_id},
            )
            .mappings()
            .one()
        )
        old = row["max_new_tokens"]
        if old >= room.limit_tokens:
            return None, 0
        values = {"id": partition_id, "old": old, "new": room.limit_tokens}
        connection.execute(
            text(
                "UPDATE sample SET max_new_tokens = NULL"
                " WHERE partition_id = :id AND max_new_tokens = :old"
            ),
            values,
        )
        n_bounded = _bound(connection, values, room)
        connection.execute(
            text("UPDATE partition SET max_new_tokens = :new WHERE id = :id"), values
        )
        change = Change(
            target=row["name"], what="max_new_tokens", old=f"{old:,}", new=f"{room.limit_tokens:,}"
        )
        note_change(connection, change, order, partition_id)
    seam(Seam.EXTEND_LIMIT_COMMITTED)
    return change, n_bounded


def _bound(connection: Connection, values: Mapping[str, int], room: Room) -> int:
    """Give what the context bounds a limit of its own: what is left there, or the old limit."""
    if room.usable_tokens is None:
        return 0
    left = ":old" if room.policy is LengthPolicy.REJECT else "max(:old, :usable - prompt_tokens)"
    return connection.execute(
        text(
            f"UPDATE sample SET max_new_tokens = {left}"
            " WHERE partition_id = :id AND max_new_tokens IS NULL"
            " AND prompt_tokens + :new > :usable"
        ),
        {**values, "usable": room.usable_tokens},
    ).rowcount


def truncated(
    ledger: Ledger, partition_id: PartitionId, after: int, limit: int, reason: str | None
) -> list[Cut]:
    """Return the next truncated samples in input order that have their line and their prompt's ids.

    `reason`: only those whose flags or reason contain it.
    """
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT s.id, s.position, s.key, s.prompt_tokens, s.prompt_sha256, s.output_tokens,"
                " s.max_new_tokens, s.flags, s.sampling_json, s.shard_id, s.line_offset,"
                " s.line_bytes, h.path FROM sample s JOIN shard h ON h.id = s.shard_id"
                " WHERE s.partition_id = :id AND s.position > :after AND s.state = 'truncated'"
                " AND s.token_offset IS NOT NULL AND (:reason IS NULL OR"
                " instr(coalesce(s.flags, '') || ' ' || coalesce(s.reason, ''), :reason) > 0)"
                " ORDER BY s.position LIMIT :n"
            ),
            {"id": partition_id, "after": after, "n": limit, "reason": reason},
        )
        return [_cut(row) for row in rows.mappings()]


def reasons(ledger: Ledger, partition_id: PartitionId) -> list[str]:
    """Return the flags and reasons that truncated samples have, each once, in their order."""
    with ledger.read() as connection:
        rows = connection.execute(
            text(
                "SELECT DISTINCT flags, reason FROM sample"
                " WHERE partition_id = :id AND state = 'truncated' LIMIT 100"
            ),
            {"id": partition_id},
        ).all()
    return sorted(
        {word for flags, why in rows for word in [*(flags or "").split(","), why] if word}
    )


def _cut(row: RowMapping) -> Cut:
    sample_id = SampleId(row["id"])
    return Cut(
        sample_id=sample_id,
        position=row["position"],
        key=row["key"],
        prompt_tokens=row["prompt_tokens"],
        prompt_sha256=row["prompt_sha256"],
        output_tokens=row["output_tokens"],
        own_limit_tokens=row["max_new_tokens"],
        flags=tuple(filter(None, (row["flags"] or "").split(","))),
        sampling=json.loads(row["sampling_json"]) if row["sampling_json"] else {},
        place=LinePlace(
            sample_id=sample_id,
            shard_id=ShardId(row["shard_id"]),
            path=row["path"],
            offset=row["line_offset"],
            n_bytes=row["line_bytes"],
        ),
    )


def end_ids(ledger: Ledger, partition_id: PartitionId) -> set[int]:
    """Return the token ids that have ended answers of the partition."""
    with ledger.read() as connection:
        reasons = connection.execute(
            text(
                "SELECT DISTINCT finish_reason FROM sample"
                " WHERE partition_id = :id AND state = 'ok' AND finish_reason LIKE '{%'"
            ),
            {"id": partition_id},
        ).scalars()
        matched = [json.loads(reason).get("matched") for reason in reasons]
    return {each for each in matched if type(each) is int}


def go_on(
    ledger: Ledger, order: Order, partition_id: PartitionId, batch: Sequence[Going]
) -> list[SampleId]:
    """Make the samples pending, with their checkpoints; return which were not as they were read."""
    with ledger.write() as connection:
        missed = [going.cut.sample_id for going in batch if not _move_one(connection, going)]
        deltas, n_moved = Deltas(), len(batch) - len(missed)
        deltas.moved(SampleState.TRUNCATED, SampleState.PENDING, n_moved)
        if n_moved:
            move(connection, partition_id, deltas)
            wait_again(connection, partition_id, [going.cut.sample_id for going in batch])
            connection.execute(
                text("UPDATE partition SET sealed_at_ms = NULL WHERE id = :id"),
                {"id": partition_id},
            )
            open_run(connection, order)
        seam(Seam.EXTEND_BEFORE_COMMIT)
    seam(Seam.EXTEND_COMMITTED)
    return missed


def _move_one(connection: Connection, going: Going) -> bool:
    """Move one sample if it is still what was read; its kept tokens are not counted anew."""
    cut = going.cut
    moved = connection.execute(
        text(
            "UPDATE sample SET state = 'pending', claim_rank = 0, held_tokens = :held,"
            " charged = 0, server_deaths = 0, not_before_at_ms = 0 WHERE id = :id"
            " AND state = 'truncated' AND shard_id = :shard AND line_offset = :offset"
            " AND held_tokens = 0"
        ),
        {
            "held": going.held_tokens,
            "id": cut.sample_id,
            "shard": cut.place.shard_id,
            "offset": cut.place.offset,
        },
    ).rowcount
    if not moved:
        return False
    from_token = 0
    rows: list[dict[str, object]] = []
    for segment, ids in going.pieces:
        rows.append(
            {
                "sample_id": cut.sample_id,
                "from_token": from_token,
                "attempt": checkpoints.LINE_ATTEMPT,
                "rid": segment.rid,
                "server": segment.server,
                "gen_id": segment.gen_id,
                "ids": ids,
            }
        )
        from_token += len(ids) // 4
    checkpoints.add(connection, rows)
    return True
