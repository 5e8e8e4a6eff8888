"""The durable half of a worker: lines to the shard, then one ledger transaction per tick.

Runs in the worker's one-thread executor, never on the loop. Order: lines → fdatasync → settle.
Invariant: what the ledger says is kept stands on the disk; a line that was written but could not
be settled is neither written again nor forgotten.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from app.core.reasoning import divide, prompt_opens
from app.core.types import Claim, Gain, Halt, Keep, Line, Orders, PutBack, Settled, ShardId, Tick
from app.errors import StorageError
from app.files.records import Record, encode
from app.files.shards import ShardWriter, shard_name
from app.files.tokens import TokenFile
from app.ledger import claims, settle, shards
from app.ledger.claims import Wish
from app.ledger.db import Ledger
from app.worker.call import Call
from app.worker.plan import WorkerPlan

# A claim and its prompt's ids.
Claimed = tuple[Claim, "array[int]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the worker says of itself in a tick."""

    state: str
    notice: str
    in_flight: int
    reserved_tokens: int
    last_token_at: datetime | None
    waiting_since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A recorded tick: the orders back, and what could not be settled for want of disk."""

    orders: Orders
    storage_problem: str = ""


class Journal:
    """One worker's shard and ledger. One thread only."""

    def __init__(self, ledger: Ledger, plan: WorkerPlan) -> None:
        self._ledger = ledger
        self._plan = plan
        self._tokens = TokenFile(plan.token_path)
        self._shard: ShardWriter | None = None
        self._shard_id: ShardId | None = None

    def claim(self, wish: Wish, now: datetime, random: Random) -> list[Claimed]:
        """Claim samples and read their prompts' ids."""
        found = claims.claim(self._ledger, wish, now, random)
        return [(each, self._tokens.read(each.token_offset, each.prompt_tokens)) for each in found]

    def record(
        self, ended: Sequence[Call], gains: Sequence[tuple[Call, Gain]], state: State, now: datetime
    ) -> Written:
        """Write one tick; calls whose line could not be written only have their tokens saved.

        Raises LedgerError if the ledger cannot be written now, DisownedError if it is not ours.
        """
        problem = ""
        try:
            self._write_lines(ended)
        except StorageError as error:
            problem = str(error)
        settled = [call for call in ended if not _waits_for_disk(call)]
        unwritten = [call for call in ended if _waits_for_disk(call)]
        late = [(call, gain) for call in unwritten if (gain := call.gain()) is not None]
        tick = Tick(
            worker_id=self._plan.worker_id,
            partition_id=self._plan.partition_id,
            gains=tuple(gain for _, gain in (*gains, *late)),
            settled=tuple(_settled(call, self._shard_id) for call in settled),
            shard_id=self._shard_id,
            shard_bytes=self._shard.size_bytes if self._shard else 0,
            shard_inode=self._shard.inode if self._shard else 0,
            state=state.state,
            notice=problem or state.notice,
            in_flight=state.in_flight,
            reserved_tokens=state.reserved_tokens,
            last_token_at=state.last_token_at,
            waiting_since=state.waiting_since,
            lease_s=self._plan.lease_s,
        )
        orders = settle.settle(self._ledger, tick, now)
        for call, gain in (*gains, *late):
            call.saved += gain.n_tokens
        return Written(orders=orders, storage_problem=problem)

    def record_last(self, ended: Sequence[Call], state: State, now: datetime) -> None:
        """Write the last tick; what the disk does not take is put back, to be continued.

        Its tokens stand in checkpoints, but for the one that closed the answer.
        """
        problem = self.record(ended, [], state, now).storage_problem
        unwritten = [call for call in ended if _waits_for_disk(call)]
        for call in unwritten:
            call.outcome = PutBack(charged=False, reason=problem)
        if unwritten:
            self.record(unwritten, [], state, now)

    def _write_lines(self, ended: Sequence[Call]) -> None:
        fresh = [call for call in ended if _waits_for_disk(call)]
        if not fresh:
            return
        for call in fresh:
            if isinstance(call.outcome, Keep) and not call.encoded:
                call.encoded = encode(record_of(call, call.outcome, self._plan))
        shard = self._open_shard()
        offsets = shard.append([call.encoded for call in fresh])
        shard.sync()  # on failure the file is cut back, and all are appended again
        for call, offset in zip(fresh, offsets, strict=True):
            call.line = (offset, len(call.encoded))
            call.encoded = b""

    def _open_shard(self) -> ShardWriter:
        if self._shard is None:
            name = shard_name(self._plan.run_id, self._plan.worker_id, 0)
            path = self._plan.output_dir / name
            self._shard_id = shards.open_shard(
                self._ledger, self._plan.partition_id, self._plan.worker_id, str(path)
            )
            self._shard = ShardWriter(path)
        return self._shard

    def close(self) -> None:
        self._tokens.close()
        if self._shard is not None:
            self._shard.close()


def _waits_for_disk(call: Call) -> bool:
    return isinstance(call.outcome, Keep) and call.line is None


def _settled(call: Call, shard_id: ShardId | None) -> Settled:
    outcome = call.outcome
    if outcome is None:
        raise AssertionError("a call is settled only after its verdict")
    if isinstance(outcome, Halt):
        outcome = PutBack(charged=False, reason=outcome.reason)
    line = None
    if call.line is not None and shard_id is not None:
        offset, n_bytes = call.line
        line = Line(
            shard_id=shard_id, offset=offset, n_bytes=n_bytes, output_tokens=call.made_tokens
        )
    return Settled(
        sample_id=call.claim.sample_id,
        attempt=call.claim.attempt,
        outcome=outcome,
        held_tokens=call.held_tokens,
        previous_tokens=call.claim.previous_tokens,
        line_tokens=call.claim.line_tokens,
        unsaved=call.gain() if isinstance(outcome, PutBack) else call.whole_gain(),
        line=line,
        prompt_tokens=call.claim.prompt_tokens,
        first_token_ms=call.first_token_ms,
        latency_ms=call.latency_ms,
    )


def record_of(call: Call, outcome: Keep, plan: WorkerPlan) -> Record:
    """Return the answer's line as values."""
    claim, output_ids, marks = call.claim, call.output_ids(), plan.reasoning_marks
    reasoning = divide(output_ids, marks, opened_by_prompt=prompt_opens(call.prompt, marks))
    return Record(
        rid=claim.rid,
        key=claim.key,
        index=claim.index,
        replica=claim.replica if plan.samples_per_prompt > 1 else None,
        turn=claim.turn if claim.turn > 1 else None,
        partition=plan.partition,
        status=outcome.state,
        finish_reason=outcome.finish_reason,
        flags=outcome.flags,
        reasoning_end=reasoning.closing_at,
        prompt_tokens=claim.prompt_tokens,
        completion_tokens=call.made_tokens,
        max_new_tokens=claim.max_new_tokens,
        attempts=claim.attempt,
        segments=call.segments(),
        gen_id=call.gen_id,
        started_at=call.started_at,
        finished_at=call.finished_at,
        prompt_sha256=claim.prompt_sha256,
        text=call.text,
        output_ids=output_ids,
    )
