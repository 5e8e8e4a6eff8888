"""What a merge has done: of each partition what was kept and what not, its tokens, its files.

Owns the counts and their stored form, from which a broken merge goes on. Pure.
Invariant: `n_samples` is the records kept and all reasons together.
"""

from collections import Counter
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from app.export.choosing import Drop, Finish
from app.export.records import Example

_SHOWN = (50, 95, 100)


@dataclass(kw_only=True)
class PartitionTally:
    """One partition. `lengths`: how many records have so many tokens, prompt and answer."""

    name: str
    n_samples: int = 0
    n_kept: int = 0
    n_prompt_tokens: int = 0
    n_answer_tokens: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)

    def drop(self, reason: Drop) -> None:
        self.n_samples += 1
        self.dropped[reason.value] += 1

    def keep(self, example: Example) -> None:
        self.n_samples += 1
        self.n_kept += 1
        self.n_prompt_tokens += len(example.prompt)
        self.n_answer_tokens += len(example.answer)
        self.finished[example.finish.value] += 1
        self.flags.update(example.all_flags)
        self.lengths[example.n_tokens] += 1

    @property
    def n_tokens(self) -> int:
        return self.n_prompt_tokens + self.n_answer_tokens

    @property
    def cut_share(self) -> float:
        """The share of the records that `max_new_tokens` ended."""
        return self.finished[Finish.LENGTH.value] / self.n_kept if self.n_kept else 0.0

    def percentiles(self) -> tuple[int, ...]:
        """Return p50, p95 and the longest, in tokens; zeros where nothing was kept."""
        return tuple(percentile(self.lengths, each) for each in _SHOWN)

    def as_fields(self) -> dict[str, Any]:
        """Return what manifest and state store, keys in an order that does not change."""
        p50, p95, longest = self.percentiles()
        return {
            "partition": self.name,
            "samples": self.n_samples,
            "kept": self.n_kept,
            "dropped": dict(sorted(self.dropped.items())),
            "prompt_tokens": self.n_prompt_tokens,
            "answer_tokens": self.n_answer_tokens,
            "finish_reasons": dict(sorted(self.finished.items())),
            "flags": dict(sorted(self.flags.items())),
            "length_p50_tokens": p50,
            "length_p95_tokens": p95,
            "length_max_tokens": longest,
        }

    def stored(self) -> dict[str, Any]:
        return {**self.as_fields(), "lengths": sorted(self.lengths.items())}


def restored(fields: dict[str, Any]) -> PartitionTally:
    """Return the counts that `stored` gave."""
    return PartitionTally(
        name=fields["partition"],
        n_samples=fields["samples"],
        n_kept=fields["kept"],
        n_prompt_tokens=fields["prompt_tokens"],
        n_answer_tokens=fields["answer_tokens"],
        dropped=Counter(fields["dropped"]),
        finished=Counter(fields["finish_reasons"]),
        flags=Counter(fields["flags"]),
        lengths=Counter({int(length): n for length, n in fields["lengths"]}),
    )


def percentile(lengths: Counter[int], percent: int) -> int:
    """Return the least length that so many per cent do not exceed, 0 for none at all.

    >>> percentile(Counter({10: 1, 20: 1, 90: 2}), 50)
    20
    """
    rank, seen = ceil(sum(lengths.values()) * percent / 100), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= rank:
            return length
    return 0


@dataclass(kw_only=True)
class Merged:
    """What a merge has done so far; complete when `merge` returns it.

    `frequency`: how often each supervised token stands in the records.
    """

    tallies: list[PartitionTally] = field(default_factory=list)
    shards: list[dict[str, Any]] = field(default_factory=list)
    frequency: Counter[int] = field(default_factory=Counter)
    n_no_conversation: int = 0  # records that could not be written as conversations
    is_unchanged: bool = False
    n_resumed_shards: int = 0

    def stored(self) -> dict[str, Any]:
        """Return what is remembered of it: counts and files, no content."""
        return {
            "partitions": [each.stored() for each in self.tallies],
            "without_conversation": self.n_no_conversation,
            "shards": self.shards,
            "frequency": {str(token): n for token, n in sorted(self.frequency.items())},
        }


def merged_from(state: dict[str, Any]) -> Merged:
    """Return what `stored` gave; a manifest has no token counts in it."""
    return Merged(
        tallies=[restored(each) for each in state["partitions"]],
        shards=list(state["shards"]),
        n_no_conversation=state["without_conversation"],
        frequency=Counter({int(token): n for token, n in state.get("frequency", {}).items()}),
    )
