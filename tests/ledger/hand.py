"""Plays one worker in a real ledger: what it claimed, what it has made, what it has saved.

Owns the memory that a real worker has, so that a test says in one line what happens; each verb is
one tick, as the settler would send it. Judges nothing.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

from app.clock import to_ms
from app.core.states import SampleState
from app.core.types import (
    Claim,
    Fail,
    Gain,
    Keep,
    Line,
    Orders,
    PartitionId,
    PutBack,
    SampleId,
    Settled,
    ShardId,
    Tick,
    WorkerId,
)
from app.ledger import claims, settle, shards, workers
from app.ledger.claims import Wish
from app.ledger.db import Ledger
from app.ledger.repairs import Adopted

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GEN = "gen-one"
URL = "http://127.0.0.1:1"


def numbers(n: int, start: int = 1) -> list[int]:
    return list(range(start, start + n))


def adopted_line(claim: Claim, line: Line, state: SampleState) -> Adopted:
    """Return the line as recovery finds it, when its settle was never recorded."""
    return Adopted(
        sample_id=claim.sample_id,
        shard_id=line.shard_id,
        offset=line.offset,
        n_bytes=line.n_bytes,
        output_tokens=line.output_tokens,
        state=state,
        finish_reason="stop",
        flags=None,
        prompt_tokens=claim.prompt_tokens,
        ended_at_ms=to_ms(NOW),
    )


@dataclass
class Hand:
    """What one worker holds. Each verb is one tick, as the settler would send it."""

    ledger: Ledger
    partition_id: PartitionId
    worker_id: WorkerId
    now: datetime = NOW
    random: Random = field(default_factory=lambda: Random(7))
    gen_id: str = GEN
    made: dict[SampleId, array[int]] = field(default_factory=dict)
    claimed: dict[SampleId, Claim] = field(default_factory=dict)
    shard_id: ShardId | None = None
    shard_bytes: int = 0
    unsettled_tokens: int = 0

    @property
    def reserved(self) -> int:
        """Return what the running samples may still bring."""
        return sum(
            claim.max_new_tokens - len(self.made[sample_id])
            for sample_id, claim in self.claimed.items()
        )

    def wish(self, n: int, sampling: Mapping[str, object] | None = None) -> Wish:
        return Wish(
            worker_id=self.worker_id,
            n=n,
            reserved_tokens=self.reserved,
            reservation=lambda held, cap: cap - held,
            gen_id=self.gen_id,
            sampling=sampling or {},
        )

    def claim(self, n: int = 1, sampling: Mapping[str, object] | None = None) -> list[Claim]:
        found = claims.claim(self.ledger, self.wish(n, sampling), self.now, self.random)
        for each in found:
            self.claimed[each.sample_id] = each
            self.made[each.sample_id] = each.held[:]
        return found

    def one(self) -> Claim:
        (claim,) = self.claim(1)
        return claim

    def gain(self, claim: Claim, ids: Sequence[int]) -> Orders:
        gained = self.gained(claim, ids)
        self.made[claim.sample_id].extend(ids)
        return self.tick(gains=(gained,))

    def gained(self, claim: Claim, ids: Sequence[int]) -> Gain:
        return Gain(
            sample_id=claim.sample_id,
            attempt=claim.attempt,
            from_token=len(self.made[claim.sample_id]),
            rid=claim.rid,
            server=URL,
            gen_id=self.gen_id,
            ids=array("I", ids).tobytes(),
        )

    def keep(
        self,
        claim: Claim,
        state: SampleState = SampleState.OK,
        unsaved: Sequence[int] = (),
    ) -> Orders:
        return self.end(claim, Keep(state=state, finish_reason="stop"), unsaved)

    def put_back(self, claim: Claim, unsaved: Sequence[int] = (), **how: object) -> Orders:
        outcome = replace(PutBack(charged=False, reason="test"), **how)  # type: ignore[arg-type]  # what
        return self.end(claim, outcome, unsaved)

    def fail(self, claim: Claim, reason: str = "broken", unsaved: Sequence[int] = ()) -> Orders:
        return self.end(claim, Fail(reason=reason), unsaved)

    def end(
        self, claim: Claim, outcome: Keep | PutBack | Fail, unsaved: Sequence[int] = ()
    ) -> Orders:
        entry = self.settled(claim, outcome, unsaved)
        self.forget(claim)
        return self.tick(settled=(entry,))

    def forget(self, claim: Claim) -> None:
        del self.claimed[claim.sample_id], self.made[claim.sample_id]

    def settled(
        self, claim: Claim, outcome: Keep | PutBack | Fail, unsaved: Sequence[int] = ()
    ) -> Settled:
        held = len(self.made[claim.sample_id])
        return Settled(
            sample_id=claim.sample_id,
            attempt=claim.attempt,
            outcome=outcome,
            held_tokens=held,
            previous_tokens=claim.previous_tokens,
            line_tokens=claim.line_tokens,
            unsaved=self.gained(claim, unsaved) if unsaved else None,
            line=self.line(held + len(unsaved)) if isinstance(outcome, Keep) else None,
        )

    def line(self, output_tokens: int) -> Line:
        """Take the next ten bytes of this worker's shard."""
        if self.shard_id is None:
            path = f"shard-{self.worker_id}"
            self.shard_id = shards.open_shard(self.ledger, self.partition_id, self.worker_id, path)
        offset, self.shard_bytes = self.shard_bytes, self.shard_bytes + 10
        return Line(shard_id=self.shard_id, offset=offset, n_bytes=10, output_tokens=output_tokens)

    def tick(self, gains: tuple[Gain, ...] = (), settled: tuple[Settled, ...] = ()) -> Orders:
        tick = Tick(
            worker_id=self.worker_id,
            partition_id=self.partition_id,
            gains=gains,
            settled=settled,
            shard_id=self.shard_id,
            shard_bytes=self.shard_bytes,
            in_flight=len(self.claimed),
            reserved_tokens=self.reserved,
        )
        return settle.settle(self.ledger, tick, self.now)

    def die(self) -> int:
        """Let the worker be lost: its samples come back without a word of it."""
        self.claimed.clear()
        self.made.clear()
        return workers.bury(self.ledger, self.worker_id, "killed", self.now)

    def later(self, delay_s: float) -> None:
        self.now += timedelta(seconds=delay_s)
