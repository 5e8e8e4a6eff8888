"""What training data takes on the disk: merged records, and hidden states for offline training.

Owns the formulas. Pure. Bytes are decimal (1 TB = 10**12 bytes), as makers of disks count them.

A hidden state is a vector of `hidden_size` numbers for each token and captured layer; beside them
stand the token's id and its mask, an int64 each. EAGLE-3 captures three layers and the last one.
Source of the merged sizes: a million tokens of code and docs with Qwen3 ids, written and measured.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import sqrt

from app.core.spread import Spread, bucket_of

DISK_SHARE = 0.9
"""How much of the free space may be planned with; the rest is for what else is written."""
_IDS_BYTES = 16


class Stored(float, Enum):
    """Bytes of one number of a hidden state."""

    BF16 = 2.0
    FP8 = 1.0
    FP32 = 4.0


class Form(Enum):
    """Forms of merged data, with the bytes that a token takes in them."""

    JSONL = 6.80
    PARQUET = 1.18
    ARROW = 16.09


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenStates:
    """What is captured of each token.

    >>> HiddenStates(hidden_size=7168).bytes_per_token
    57360
    >>> HiddenStates(hidden_size=7168, stored=Stored.FP8).bytes_per_token
    28688
    >>> HiddenStates(hidden_size=7168, n_last_layers=0).bytes_per_token
    43024
    """

    hidden_size: int
    n_aux_layers: int = 3
    n_last_layers: int = 1
    stored: Stored = Stored.BF16

    @property
    def bytes_per_token(self) -> int:
        """(auxiliary + last layers) x hidden size x bytes of a number + two int64."""
        layers = self.n_aux_layers + self.n_last_layers
        return int(layers * self.hidden_size * self.stored.value) + _IDS_BYTES

    def bytes_of(self, n_tokens: int) -> int:
        """Return the bytes of so many tokens.

        >>> HiddenStates(hidden_size=7168).bytes_of(251_000_000)
        14397360000000
        """
        return n_tokens * self.bytes_per_token

    def tokens_within(self, n_bytes: int) -> int:
        """Return how many tokens so many bytes hold.

        >>> HiddenStates(hidden_size=7168).tokens_within(9_200_000_000_000)
        160390516
        """
        return n_bytes // self.bytes_per_token


def merged_bytes(n_tokens: int, form: Form = Form.JSONL) -> int:
    """Return the bytes that merged records of so many tokens take, prompts included.

    >>> merged_bytes(251_000_000), merged_bytes(251_000_000, Form.PARQUET)
    (1706800000, 296180000)
    """
    return round(n_tokens * form.value)


def tokens_up_to(lengths: Spread, max_length: int | None) -> float:
    """Return the mean of min(length, max_length) over the spread; 0.0 without lengths.

    Exact but for the one bucket that `max_length` falls into: there its lengths are taken to be
    spread evenly between the bucket's ends.

    >>> tokens_up_to(Spread.of([4, 6]), None), tokens_up_to(Spread.of([4, 6]), 5)
    (5.0, 4.5)
    """
    if not lengths.n:
        return 0.0
    return (
        sum(
            _part(bucket.n, bucket.total, bucket.least, bucket.upper, max_length)
            for bucket in lengths.buckets
        )
        / lengths.n
    )


def _part(n: int, total: int, least: int, upper: int, max_length: int | None) -> float:
    if max_length is None or upper <= max_length:
        return float(total)
    if least >= max_length:
        return float(n * max_length)
    width = upper - least + 1
    below = max_length - least + 1
    mean_below = (least + max_length) / 2
    kept = n * (below / width * mean_below + (width - below) / width * max_length)
    return min(float(total), kept)


def deviation_up_to(lengths: Spread, max_length: int | None) -> float:
    """Return the standard deviation of min(length, max_length); 0.0 without lengths.

    Of a bucket count and mean are known; its lengths are taken to be spread evenly about the mean,
    which at a quarter's width moves the result by a few per cent at most.

    >>> round(deviation_up_to(Spread.of([4, 6]), None), 2), deviation_up_to(Spread.of([4, 6]), 4)
    (1.0, 0.0)
    """
    if not lengths.n:
        return 0.0
    mean = tokens_up_to(lengths, max_length)
    square = 0.0
    for bucket in lengths.buckets:
        part = _part(bucket.n, bucket.total, bucket.least, bucket.upper, max_length) / bucket.n
        is_whole = max_length is None or bucket.upper <= max_length
        inside = ((bucket.upper - bucket.least) ** 2 / 12) if is_whole and bucket.n > 1 else 0.0
        square += bucket.n * ((part - mean) ** 2 + inside)
    return sqrt(square / lengths.n)


def summed(prompts: Spread, outputs: Spread) -> Spread:
    """Return how long prompt and answer together are, as if the two knew nothing of each other.

    Its mean is exact, whatever they know.

    >>> both = summed(Spread.of([2, 4]), Spread.of([10]))
    >>> both.n, both.mean
    (2, 13.0)
    """
    return Spread.counted(_sums(prompts, outputs))


def _sums(prompts: Spread, outputs: Spread) -> Iterable[tuple[int, int, int]]:
    for output in outputs.buckets:
        for prompt in prompts.buckets:
            n = prompt.n * output.n
            mean = prompt.total / prompt.n + output.total / output.n
            yield bucket_of(round(mean)), n, round(mean * n)
