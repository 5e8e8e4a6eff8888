"""How many tokens a run's training data will have, and what that takes on the disk.

Owns the reading: each partition's samples at its end, and how long prompt and answer of those that
have ended are. The formulas are `core/training_bytes.py`'s. Changes nothing; a partition of which
no answer was measured has no figure, and the sum says "at least".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from app.core.estimate import wanted_samples
from app.core.spread import Measure, Spread
from app.core.training_bytes import HiddenStates, deviation_up_to, summed, tokens_up_to
from app.core.types import RunId
from app.core.views import PartitionView
from app.ledger import measures, runs
from app.ledger.db import Ledger

_FEWEST_MEASURED = 20
_EIGHT_OF_TEN = 1.2816  # standard deviations to either side
_KINDS = (Measure.PROMPT, Measure.OUTPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSize:
    """One partition at its end. `lengths`: prompt and answer together, of `n_measured` answers.

    `n_left` of the samples have no answer yet. Nothing measured: `n_measured` is 0 and `n_tokens`
    None.
    """

    name: str
    n_samples: int
    n_left: int
    n_measured: int
    lengths: Spread

    def n_tokens(self, max_length: int | None = None) -> int | None:
        """Return the tokens of all its samples, each cut to `max_length`."""
        if not self.n_measured:
            return None
        return round(self.n_samples * tokens_up_to(self.lengths, max_length))

    def variance(self, max_length: int | None = None) -> float | None:
        """Return the variance of `n_tokens`; None while too few answers are measured to say.

        Each sample left has a length of its own, and all of them share the error of the mean.
        """
        if self.n_measured < _FEWEST_MEASURED:
            return None
        square = deviation_up_to(self.lengths, max_length) ** 2
        return self.n_left * square * (1 + self.n_left / self.n_measured)


def sizes(ledger: Ledger, run_id: RunId) -> list[PartSize]:
    """Return how large each partition of a run gets, in the order of the run."""
    return [_size(ledger, each) for each in runs.partitions_of(ledger, run_id)]


def _size(ledger: Ledger, partition: PartitionView) -> PartSize:
    found = measures.spreads(ledger, partition.id, list(_KINDS))
    outputs = found[Measure.OUTPUT]
    n_samples = wanted_samples(partition.counts, partition.goal_samples) - partition.counts.failed
    if partition.token_budget is not None and outputs.mean:
        n_samples = min(n_samples, int(partition.token_budget / outputs.mean))
    n_samples = max(n_samples, partition.counts.kept)
    return PartSize(
        name=partition.name,
        n_samples=n_samples,
        n_left=n_samples - partition.counts.kept,
        n_measured=outputs.n,
        lengths=summed(found[Measure.PROMPT], outputs),
    )


def total_tokens(parts: Sequence[PartSize], max_length: int | None = None) -> int:
    """Return the tokens of all partitions of which something was measured."""
    return sum(each.n_tokens(max_length) or 0 for each in parts)


def tokens_band(parts: Sequence[PartSize], max_length: int | None = None) -> tuple[int, int] | None:
    """Return between which totals it lies in eight of ten cases, as far as the lengths tell.

    None where a partition has too few measured answers. That long answers end last is not in it:
    early in a run the truth is rather above.
    """
    variances = [each.variance(max_length) for each in parts]
    known = [each for each in variances if each is not None]
    if not parts or len(known) < len(variances):
        return None
    middle, reach = total_tokens(parts, max_length), _EIGHT_OF_TEN * sqrt(sum(known))
    return max(0, round(middle - reach)), round(middle + reach)


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
