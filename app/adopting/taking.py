"""What was found is taken over: lines to a shard, fsync, then the ledger, batch by batch.

Owns the order of writing, which is a worker's: a line stands on the disk before the ledger says so.
Killed at any instant, what was written and not recorded is found by the comparison of a start, or
of the next order, and nothing stands twice. Called under the home's lock.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import repeat
from pathlib import Path
from random import Random

from app.adopting.finding import refuse_taking
from app.adopting.looking import Judged, Look, Looked, Progress, judged_lines
from app.adopting.records import Origin, flags_of, record_of
from app.clock import Clock
from app.core.adopting import Left, verdict
from app.core.format import plural
from app.core.types import Keep, PartitionId, ShardId
from app.errors import ConflictError
from app.files.records import encode
from app.files.shards import ShardWriter
from app.ledger import adopting, shards
from app.ledger.activity import Deed
from app.ledger.adopting import Settling, Shard
from app.ledger.db import Ledger

_BATCH_LINES, _BATCH_TOKENS = 500, 1_000_000

Encode = Callable[[Sequence[str]], Awaitable[list[list[int]]]]
"""Asks a server for the ids of some texts, no special tokens added."""


@dataclass(slots=True, kw_only=True)
class Taken:
    """What was taken over of a file, and what was left after all (texts that are too long)."""

    looked: Looked
    n: int = 0
    n_tokens: int = 0
    left: dict[Left, int] = field(default_factory=dict)


def take_over(  # noqa: PLR0913 - of what, how, by whom and when: each once
    ledger: Ledger,
    look: Look,
    looked: Looked,
    *,
    encode_texts: Encode,
    who: str,
    clock: Clock,
    random: Random,
    progress: Progress,
) -> Taken:
    """Take over what a look has found, at most an answer for each sample, each once.

    ConflictError where the partition is at work, or the file or the run is no longer what was
    looked at; the batches before it stay. ServerAwayError if a text needs a server that is away.
    """
    refuse_taking(ledger, look.run, [looked.source])
    taken = Taken(looked=looked)
    if looked.chosen:
        job = _Job(
            ledger=ledger, look=look, taken=taken, encode_texts=encode_texts, who=who, clock=clock,
            random=random,
        )  # fmt: skip
        job.carry_out(progress)
    return taken


@dataclass(slots=True, kw_only=True)
class _Job:
    """One file of one partition; fills `taken`."""

    ledger: Ledger
    look: Look
    taken: Taken
    encode_texts: Encode
    who: str
    clock: Clock
    random: Random
    _writer: ShardWriter | None = None
    _shard_id: ShardId | None = None

    def carry_out(self, progress: Progress) -> None:
        again = Looked(source=self.taken.looked.source)
        lines = judged_lines(self.ledger, self.look, again.source, progress, again)
        try:
            for batch in _batches(self._chosen(lines)):
                self._take(batch)
        finally:
            if self._writer is not None:
                self._writer.close()
        missing = len(self.taken.looked.chosen) - self.taken.n - sum(self.taken.left.values())
        if missing:
            raise ConflictError(
                f"{again.source.path} was changed while it was read:"
                f" {plural(missing, 'answer')} of it were not found again",
                hint="adopt once more when nobody writes to it; what was taken over stays",
            )

    def _chosen(self, lines: Iterator[Judged]) -> Iterator[Judged]:
        chosen = self.taken.looked.chosen
        for each in lines:
            if chosen.get(each.sample.sample_id) == each.line.number:
                yield each

    def _take(self, batch: Sequence[Judged]) -> None:
        at = self.clock.now()
        ready = [
            (each, ids, keep)
            for each, ids in zip(batch, self._ids(batch), strict=True)
            if (keep := self._verdict(each, ids)) is not None
        ]
        if not ready:
            return
        encoded = [
            encode(record_of(each, ids, keep, self._origin(at))) for each, ids, keep in ready
        ]
        writer, shard_id = self._opened()
        before = writer.size_bytes
        offsets = writer.append(encoded)
        writer.sync()
        settling = [
            Settling(
                sample=each.sample,
                state=keep.state,
                output_tokens=len(ids),
                finish_reason=keep.finish_reason,
                flags=flags_of(each, keep),
                offset=offset,
                n_bytes=len(line),
            )
            for (each, ids, keep), offset, line in zip(ready, offsets, encoded, strict=True)
        ]
        shard = Shard(id=shard_id, n_bytes=writer.size_bytes, inode=writer.inode)
        try:
            adopting.settle_adopted(
                self.ledger, self._partition_id, settling, shard, self._deed(len(ready)), at
            )
        except ConflictError:
            writer.cut(before)
            raise
        self.taken.n += len(ready)
        self.taken.n_tokens += sum(len(ids) for _, ids, _ in ready)

    @property
    def _partition_id(self) -> PartitionId:
        return self.taken.looked.source.partition.id

    def _ids(self, batch: Sequence[Judged]) -> list[array[int]]:
        """Return the ids of each answer; those of texts are made by a server, some at once."""
        texts = [each.line.found.text or "" for each in batch if each.line.found.ids is None]
        made = map(array, repeat("I"), self._encoded(texts)) if texts else iter(())
        return [
            next(made) if each.line.found.ids is None else each.line.found.ids for each in batch
        ]

    def _encoded(self, texts: Sequence[str]) -> list[list[int]]:
        async def asked() -> list[list[int]]:
            return await self.encode_texts(texts)

        return asyncio.run(asked())

    def _verdict(self, each: Judged, ids: array[int]) -> Keep | None:
        if each.keep is not None:
            return each.keep
        found = verdict(ids, each.line.found.finish_reason, each.sample, self.look.rules)
        if isinstance(found, Keep):
            return found
        self.taken.left[found] = self.taken.left.get(found, 0) + 1
        return None

    def _opened(self) -> tuple[ShardWriter, ShardId]:
        """Return the file, its row written before its first byte."""
        if self._writer is None or self._shard_id is None:
            run, partition = self.look.run, self.taken.looked.source.partition
            number = adopting.n_shards(self.ledger, partition.id)
            folder = Path(run.output_dir) / partition.name
            path = folder / f"responses-{run.id}-adopted-{number}.jsonl"
            self._shard_id = shards.open_shard(self.ledger, partition.id, None, str(path))
            self._writer = ShardWriter(path)
        return self._writer, self._shard_id

    def _origin(self, at: datetime) -> Origin:
        partition = self.taken.looked.source.partition
        return Origin(look=self.look, partition=partition, at=at, random=self.random)

    def _deed(self, n: int) -> Deed:
        source = self.taken.looked.source
        return Deed(
            who=self.who,
            event="adopt",
            detail=f"{source.partition.name}: {plural(n, 'answer')} of {source.path}",
            run_id=self.look.run.id,
            partition_id=source.partition.id,
        )


def _batches(lines: Iterator[Judged]) -> Iterator[list[Judged]]:
    batch: list[Judged] = []
    n_tokens = 0
    for each in lines:
        batch.append(each)
        n_tokens += len(each.line.found.ids or ())
        if len(batch) >= _BATCH_LINES or n_tokens >= _BATCH_TOKENS:
            yield batch
            batch, n_tokens = [], 0
    if batch:
        yield batch
