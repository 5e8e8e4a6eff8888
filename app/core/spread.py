"""How quantities are spread, as counts in buckets: what one answer adds, and percentiles of many.

Owns the bucket scheme of the ledger's measures, one for tokens and for milliseconds: whole numbers
from 0 on, four buckets per octave, so a bucket is at most a quarter as wide as its least value;
below 8 each number has a bucket of its own. `LEAST[i]` is the least number of bucket i; the last
bucket begins at 2**31 and is open. Buckets are stored by number, so the scheme may only be
extended at its end.
Invariant: spreads of the same kind add up, whatever hours and partitions they are of.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from app.core.answer import ended_by_length

_PER_OCTAVE, _OCTAVES = 4, 31
LEAST = tuple(
    sorted({0} | {ceil(2 ** (k / _PER_OCTAVE)) for k in range(_PER_OCTAVE * _OCTAVES + 1)})
)


class Measure(StrEnum):
    """What is counted of answers that ended, in whole tokens or milliseconds.

    An answer that is made anew (retry) or further (extend) ends once more and counts once more.
    The two times are only of answers that one request of one worker made from their first token
    to their last: of a continued or adopted answer nobody saw the whole.
    """

    OUTPUT = "output"  # output tokens of the answer, what earlier attempts left included
    PROMPT = "prompt"  # tokens of its prompt
    OUTPUT_CUT = "output_cut"  # output tokens, of those answers that max_new_tokens ended
    FIRST_TOKEN = "first_token"  # noqa: S105 - ms from sending the request to its first token
    LATENCY = "latency"  # ms from sending the request to its end


class Elsewhere(StrEnum):
    """What is counted beside, of answers that no worker of ours has received."""

    ADOPTED = "adopted"  # output tokens of an answer that an earlier script had made


def measured(
    output_tokens: int,
    finish_reason: str,
    prompt_tokens: int | None,
    *,
    first_token_ms: int | None = None,
    latency_ms: int | None = None,
) -> list[tuple[Measure, int]]:
    """Return what an answer that ended adds to the measures; what is None adds nothing."""
    found = {
        Measure.OUTPUT: output_tokens,
        Measure.OUTPUT_CUT: output_tokens if ended_by_length(finish_reason) else None,
        Measure.PROMPT: prompt_tokens,
        Measure.FIRST_TOKEN: first_token_ms,
        Measure.LATENCY: latency_ms,
    }
    return [(kind, value) for kind, value in found.items() if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """`n` values from `least` to `upper`, both included; `total` is their sum."""

    least: int
    upper: int
    n: int
    total: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Counts of values in buckets. `buckets` are those that hold something, in order.

    Count and mean are exact; a percentile is right to within the width of its bucket.
    """

    buckets: tuple[Bucket, ...] = ()

    @classmethod
    def counted(cls, rows: Iterable[tuple[int, int, int]]) -> "Spread":
        """Return the spread of (bucket number, n, sum of the values); equal numbers add up.

        >>> Spread.counted([(bucket_of(100), 2, 203)]).mean
        101.5
        """
        found: dict[int, tuple[int, int]] = {}
        for number, n, total in rows:
            n_before, total_before = found.get(number, (0, 0))
            found[number] = (n_before + n, total_before + total)
        return cls(
            tuple(
                Bucket(least=LEAST[number], upper=upper_of(number), n=n, total=total)
                for number, (n, total) in sorted(found.items())
                if n
            )
        )

    @classmethod
    def of(cls, values: Iterable[int]) -> "Spread":
        """Return the spread of the values themselves."""
        return cls.counted((bucket_of(value), 1, value) for value in values)

    @property
    def n(self) -> int:
        return sum(bucket.n for bucket in self.buckets)

    @property
    def mean(self) -> float | None:
        """Return the exact mean; None without values."""
        n = self.n
        return sum(bucket.total for bucket in self.buckets) / n if n else None

    @property
    def bounds(self) -> tuple[int, ...]:
        """Return the greatest number of each bucket that holds something."""
        return tuple(bucket.upper for bucket in self.buckets)

    @property
    def counts(self) -> tuple[int, ...]:
        """Return how many values each of those buckets holds."""
        return tuple(bucket.n for bucket in self.buckets)

    def percentile(self, share: float) -> float | None:
        """Return the value that a share (0 to 1) of all does not exceed; None without values.

        It is the one at rank ceil(share x n), found in its bucket by interpolation from the least
        number to the bucket's mean, and from there to the greatest.

        >>> Spread.of([7]).percentile(0.5)
        7.0
        """
        if not 0 <= share <= 1:
            raise ValueError(f"a percentile's share is between 0 and 1, not {share}")
        rank = max(1, ceil(share * self.n))
        for bucket in self.buckets:
            if rank <= bucket.n:
                return _inside(bucket, (rank - 0.5) / bucket.n)
            rank -= bucket.n
        return None

    def n_below(self, value: int) -> int:
        """Return how many values are less; exact where a bucket begins, as at each power of two.

        Elsewhere the values that share a bucket with `value` are not among them.

        >>> Spread.of([3, 64, 127, 128]).n_below(128)
        3
        """
        return sum(bucket.n for bucket in self.buckets if bucket.upper < value)

    def plus(self, other: "Spread") -> "Spread":
        """Return the spread of the values of both."""
        return Spread.counted(
            (bucket_of(bucket.least), bucket.n, bucket.total)
            for bucket in (*self.buckets, *other.buckets)
        )


def cut_ratio(output: Spread, cut: Spread) -> float | None:
    """Return which share of the answers max_new_tokens ended, 0 to 1; None without answers."""
    return cut.n / output.n if output.n else None


def _inside(bucket: Bucket, place: float) -> float:
    """Return the value at a place (0 to 1) of a bucket: half of its values are below its mean."""
    mean = bucket.total / bucket.n
    below = (mean - bucket.least) * min(1.0, 2 * place)
    above = (max(bucket.upper, mean) - mean) * max(0.0, 2 * place - 1)
    return bucket.least + below + above


def bucket_of(value: int) -> int:
    """Return the number of the bucket that holds a whole number; what is below 0 counts as 0.

    >>> [bucket_of(value) for value in (0, 7, 8, 9, 10)]
    [0, 7, 8, 8, 9]
    """
    return max(0, bisect_right(LEAST, value) - 1)


def upper_of(number: int) -> int:
    """Return the greatest number of a bucket; of the last, open one its least.

    >>> [upper_of(bucket_of(value)) for value in (0, 7, 8, 1_000)]
    [0, 7, 9, 1023]
    """
    return LEAST[number + 1] - 1 if number + 1 < len(LEAST) else LEAST[number]
