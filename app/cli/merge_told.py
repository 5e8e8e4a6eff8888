"""What a merge tells: how far it is while it works, and at its end what became of every sample.

Owns layout and words. Invariant: an output that is lost never matters to the work.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from app.clock import Clock
from app.core import format as words
from app.core.training_bytes import DISK_SHARE, HiddenStates
from app.export.tally import Merged, PartitionTally
from app.files.space import free_bytes

LINE_EVERY_S = 5.0
_SPACE_TIMEOUT_S = 5.0
_STATES = HiddenStates(hidden_size=7168)


class MergeProgress:
    """Show a line now and then; in a terminal the same line again."""

    def __init__(self, stream: TextIO, clock: Clock, n_samples: int | None) -> None:
        self._stream, self._clock, self._n_samples = stream, clock, n_samples
        self._is_terminal, self._width = stream.isatty(), 0
        self._shown_at_s = clock.monotonic()
        self._counts: dict[str, int] = {}

    def show(self, partition: str, n_samples: int) -> None:
        self._counts[partition] = n_samples
        now_s = self._clock.monotonic()
        if now_s - self._shown_at_s < (0.5 if self._is_terminal else LINE_EVERY_S):
            return
        self._shown_at_s = now_s
        n = sum(self._counts.values())
        of = f" of {self._n_samples:,}" if self._n_samples is not None else ""
        self._write(f"{n:,}{of} samples, now {partition}")

    def close(self) -> None:
        if self._width:
            self._write("")

    def _write(self, line: str) -> None:
        with suppress(OSError, ValueError):
            if self._is_terminal:
                self._stream.write(f"\r{line:<{self._width}}" + ("" if line else "\r"))
                self._width = len(line)
            else:
                self._stream.write(f"{line}\n")
            self._stream.flush()


def told_lines(folder: Path, done: Merged) -> Iterator[str]:
    """Yield what became of every sample, and what the data takes."""
    width = max((len(each.name) for each in done.tallies), default=0)
    for each in done.tallies:
        yield f"{each.name:<{width}}  {_partition(each)}"
    n_tokens = sum(each.n_tokens for each in done.tallies)
    n_records = sum(each.n_kept for each in done.tallies)
    supervised = sum(each.n_answer_tokens for each in done.tallies)
    files = words.plural(len(done.shards), "file")
    yield (
        f"{words.plural(n_records, 'record')}, {words.tokens(n_tokens)} tokens,"
        f" {words.tokens(supervised)} of them supervised, in {files}: {folder / 'data'}"
    )
    if (folder / "conversations").is_dir():
        yield (
            f"{folder / 'conversations'}: only an approximation, trainers encode these texts"
            f" again; {done.n_no_conversation:,} records have no conversation"
        )
    if done.is_unchanged:
        yield "it was merged already: nothing was changed"
    elif done.n_resumed_shards:
        yield f"went on behind {words.plural(done.n_resumed_shards, 'file')} of a broken merge"
    yield from _states(folder, n_tokens)


def _partition(tally: PartitionTally) -> str:
    p50, p95, longest = tally.percentiles()
    dropped = ", ".join(f"{n:,} {reason}" for reason, n in sorted(tally.dropped.items()))
    kept = f"{tally.n_kept:,} of {words.plural(tally.n_samples, 'sample')}"
    lengths = f"p50 {p50:,}, p95 {p95:,}, longest {longest:,} tokens"
    cut = f", {tally.cut_share:.1%} cut" if tally.n_kept else ""
    left_out = f"; left out: {dropped}" if dropped else ""
    return f"{kept}, {lengths}{cut}{left_out}"


def _states(folder: Path, n_tokens: int) -> Iterator[str]:
    """Yield what hidden states of it would take, beside the room that there is."""
    needed = _STATES.bytes_of(n_tokens)
    free = free_bytes(folder, _SPACE_TIMEOUT_S)
    if free is None or not n_tokens:
        return
    fits = "they fit" if needed <= free * DISK_SHARE else "they do not fit"
    yield (
        f"hidden states of it ({_STATES.bytes_per_token:,} bytes a token): {words.size(needed)};"
        f" {words.size(free)} are free: {fits} (longwatch forecast says more)"
    )
