"""Counts of one partition: rows in, kept, skipped by reason, lengths, flags and examples.

Owns the arithmetic of the report; nothing here knows a file. Invariant: rows in are the kept ones
and the skipped ones, each counted once. Lengths are characters of all messages of a record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from app.core.visible import visible_line
from app.sources.contract import SkipReason

N_EXAMPLES = 3
EXAMPLE_CHARACTERS = 200


@dataclass(slots=True)
class Tally:
    """Filled row by row. `lengths` counts how many kept records have how many characters."""

    n_kept: int = 0
    skipped: dict[SkipReason, int] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)
    other_recipes: dict[str, int] = field(default_factory=dict)  # rows read by another recipe
    examples: list[dict[str, str]] = field(default_factory=list)

    @property
    def n_skipped(self) -> int:
        return sum(self.skipped.values())

    @property
    def n_rows(self) -> int:
        return self.n_kept + self.n_skipped

    def keep(self, n_characters: int, flags: Iterable[str] = ()) -> None:
        self.n_kept += 1
        self.lengths[n_characters] = self.lengths.get(n_characters, 0) + 1
        if not flags:
            return
        for flag in flags:
            self.flags[flag] = self.flags.get(flag, 0) + 1

    def skip(self, reason: SkipReason) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def wants_example(self) -> bool:
        return len(self.examples) < N_EXAMPLES

    def show(self, key: str, text: str) -> None:
        """Take an example: the beginning of a text, with every control character to be seen."""
        self.examples.append({"id": key, "text": visible_line(text[:EXAMPLE_CHARACTERS])})

    def in_order(self) -> dict[str, int]:
        """Return the skipped rows by reason, in the order of the contract; reasons met only."""
        return {one.value: self.skipped[one] for one in SkipReason if one in self.skipped}

    def characters(self) -> dict[str, int]:
        """Return p50, p95 and the maximum of the kept records, zeros where none is kept."""
        lengths = sorted(self.lengths.items())
        return {
            "p50": _ranked(lengths, ceil(self.n_kept * 0.5)),
            "p95": _ranked(lengths, ceil(self.n_kept * 0.95)),
            "max": lengths[-1][0] if lengths else 0,
        }


def example_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the id of a record and the text that it ends with."""
    return record["id"], str(record["messages"][-1].get("content") or "")


def _ranked(lengths: list[tuple[int, int]], rank: int) -> int:
    """Return the length of that rank, from 1, among counted lengths in order.

    >>> _ranked([(5, 1), (7, 2)], 1), _ranked([(5, 1), (7, 2)], 2)
    (5, 7)
    """
    for length, n in lengths:
        rank -= n
        if rank <= 0:
            return length
    return 0
