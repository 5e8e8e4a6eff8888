"""The merge: every sample of runs and datasets, in order, to shards of training data.

Owns the order of the steps and what a broken merge goes on from. Invariants: the same inputs give
the same bytes, broken off or not; the manifest comes last, so a folder that has one is whole; what
another merge has left is replaced only on demand.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from app.errors import ConflictError
from app.export import published
from app.export.conversations import ConversationShard
from app.export.generated import Row
from app.export.parquet import ParquetShard
from app.export.records import Example
from app.export.shards import Shard, forget_state, read_state, shard_name, write_state
from app.export.tally import Merged, PartitionTally, merged_from
from app.files.appending import make_folder
from app.files.space import storage_error

DATA, PARQUET, CONVERSATIONS = "data", "parquet", "conversations"
_LOCK = ".merging.lock"
_TOLD_EVERY_ROWS = 500


class Part(Protocol):
    """One partition to merge: a run's, or a dataset's answers."""

    @property
    def name(self) -> str: ...

    def rows(self, after: int) -> Iterator[Row]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOrder:
    """What to merge, and how. `identity` stands for all that the bytes depend on."""

    folder: Path
    parts: Sequence[Part]
    identity: str
    facts: dict[str, Any]  # what the manifest says of the inputs
    shard_tokens: int
    with_parquet: bool = False
    with_conversations: bool = False
    with_text: bool = False
    may_overwrite: bool = False


Progress = Callable[[str, int], None]  # the partition at work, and its samples so far


def merge(order: MergeOrder, told: Progress) -> Merged:
    """Write the merged data. ConflictError where other data is; StorageError where none can be."""
    with _held(order.folder):
        before = published.read(order.folder)
        if before is not None and before.get("identity") == order.identity:
            done = merged_from(before)
            done.is_unchanged = True
            return done
        done, number, after = _begun(order, has_other=before is not None)
        work = _Work(order, done)
        with work.open:
            for at, part in enumerate(order.parts[number:], number):
                if at == len(done.tallies):
                    done.tallies.append(PartitionTally(name=part.name))
                work.take(at, part, after, told)
                after = -1
            work.publish(len(order.parts), -1)
        published.write(order.folder, order.identity, order.facts, done)
        forget_state(order.folder)
        return done


class _Work:
    """The shard that is being filled, if any."""

    def __init__(self, order: MergeOrder, done: Merged) -> None:
        self.open = ExitStack()
        self._order, self._done = order, done
        self._shard: Shard | None = None
        self._others: list[ParquetShard | ConversationShard] = []

    def take(self, number: int, part: Part, after: int, told: Progress) -> None:
        tally = self._done.tallies[number]
        for position, found in part.rows(after):
            if isinstance(found, Example):
                tally.keep(found)
                self._add(found)
            else:
                tally.drop(found)
            if tally.n_samples % _TOLD_EVERY_ROWS == 0:
                told(part.name, tally.n_samples)
            if self._shard is not None and self._shard.n_tokens >= self._order.shard_tokens:
                self.publish(number, position)
        told(part.name, tally.n_samples)

    def publish(self, number: int, position: int) -> None:
        """Give the shard its name, and remember that the next one begins behind this sample."""
        if self._shard is None:
            return
        for other in self._others:
            other.close()
            if isinstance(other, ConversationShard):
                self._done.n_no_conversation += other.n_left_out
        self._done.shards.append(self._shard.publish())
        self._shard, self._others = None, []
        state = {"identity": self._order.identity, "next": [number, position]}
        write_state(self._order.folder, {**state, **self._done.stored()})

    def _add(self, example: Example) -> None:
        if self._shard is None:
            number, order = len(self._done.shards), self._order
            for other in _others(order, number):
                self.open.enter_context(other)
                self._others.append(other)
            self._shard = self.open.enter_context(
                Shard(order.folder / DATA, number, with_text=order.with_text)
            )
        self._shard.add(example)
        for other in self._others:
            other.add(example)
        self._done.frequency.update(example.answer)


def _others(order: MergeOrder, number: int) -> Iterator[ParquetShard | ConversationShard]:
    """Yield the other forms of a shard, opened."""
    if order.with_parquet:
        path = order.folder / PARQUET / shard_name(number, "parquet")
        yield ParquetShard(path, with_text=order.with_text)
    if order.with_conversations:
        yield ConversationShard(order.folder / CONVERSATIONS / shard_name(number))


def _begun(order: MergeOrder, *, has_other: bool) -> tuple[Merged, int, int]:
    """Return what a broken merge of the same has done, and where it goes on; else begin anew."""
    state = read_state(order.folder)
    if state is not None and state.get("identity") == order.identity:
        done = merged_from(state)
        number, after = state["next"]
        if all((order.folder / each["file"]).exists() for each in done.shards):
            done.n_resumed_shards = len(done.shards)
            return done, number, after
    files = [
        each for name in (DATA, PARQUET, CONVERSATIONS) for each in (order.folder / name).glob("*")
    ]
    if (has_other or (files and state is None)) and not order.may_overwrite:
        what = "the merge of something else" if has_other else "files that are no merge's"
        raise ConflictError(
            f"{order.folder} holds {what}",
            hint="name another --out, or replace it with --overwrite",
        )
    published.remove(order.folder)
    forget_state(order.folder)
    return Merged(), 0, -1


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the folder against a second merge; ConflictError while one works there."""
    try:
        make_folder(folder)
        descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise storage_error(folder, "write", error, then="merge again") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConflictError(
                f"another merge works in {folder}", hint="wait for it, or name another --out"
            ) from error
        yield
    finally:
        os.close(descriptor)
