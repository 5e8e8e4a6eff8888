"""How many tokens a run's training data will have, and what that takes on the disk.

Owns the reading: each partition's samples at its end, and how long prompt and answer of those that
have ended are. The formulas are `core/training_bytes.py`'s. Changes nothing; a partition of which
no answer was measured has no figure, and the sum says "at least".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.estimate import wanted_samples
from app.core.spread import Measure, Spread
from app.core.training_bytes import HiddenStates, summed, tokens_up_to
from app.core.types import RunId
from app.core.views import PartitionView
from app.ledger import measures, runs
from app.ledger.db import Ledger

_KINDS = (Measure.PROMPT, Measure.OUTPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSize:
    """One partition at its end. `lengths`: prompt and answer together, of `n_measured` answers.

    Nothing measured: `n_measured` is 0 and `n_tokens` None.
    """

    name: str
    n_samples: int
    n_measured: int
    lengths: Spread

    def n_tokens(self, max_length: int | None = None) -> int | None:
        """Return the tokens of all its samples, each cut to `max_length`."""
        if not self.n_measured:
            return None
        return round(self.n_samples * tokens_up_to(self.lengths, max_length))


def sizes(ledger: Ledger, run_id: RunId) -> list[PartSize]:
    """Return how large each partition of a run gets, in the order of the run."""
    return [_size(ledger, each) for each in runs.partitions_of(ledger, run_id)]


def _size(ledger: Ledger, partition: PartitionView) -> PartSize:
    found = measures.spreads(ledger, partition.id, list(_KINDS))
    outputs = found[Measure.OUTPUT]
    n_samples = wanted_samples(partition.counts, partition.goal_samples) - partition.counts.failed
    if partition.token_budget is not None and outputs.mean:
        n_samples = min(n_samples, int(partition.token_budget / outputs.mean))
    return PartSize(
        name=partition.name,
        n_samples=max(n_samples, partition.counts.kept),
        n_measured=outputs.n,
        lengths=summed(found[Measure.PROMPT], outputs),
    )


def total_tokens(parts: Sequence[PartSize], max_length: int | None = None) -> int:
    """Return the tokens of all partitions of which something was measured."""
    return sum(each.n_tokens(max_length) or 0 for each in parts)


def longest_that_fits(
    parts: Sequence[PartSize], states: HiddenStates, n_bytes: int, most: int = 1 << 20
) -> int | None:
    """Return the greatest max_length, a multiple of 64, at which the hidden states fit.

    None if they fit uncut, or if even 64 tokens of each sample are too many.
    """
    if states.bytes_of(total_tokens(parts)) <= n_bytes:
        return None
    fits, too_long = 0, most // 64
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if states.bytes_of(total_tokens(parts, middle * 64)) <= n_bytes:
            fits = middle
        else:
            too_long = middle
    return fits * 64 or None
