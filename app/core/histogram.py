"""Counts of lengths as a few bars that a person can take in: one for each doubling.

Pure. Invariant: the bars hold every value of the spread; what is shorter than the first begins with
stands in the first, what is longer than the last ends with in the last.
"""

from dataclasses import dataclass

from app.core.spread import Spread

N_BARS = 15
_LEAST_BITS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`n` answers of `least` to `upper` tokens, both included."""

    least: int
    upper: int
    n: int


def histogram(spread: Spread, cap: int) -> tuple[Bar, ...]:
    """Return at most 15 bars, each twice as wide as the one before; the last holds `cap`.

    >>> bars = histogram(Spread.of([70, 90, 5_000]), 16_384)
    >>> len(bars), (bars[-1].least, bars[-1].upper), [bar.n for bar in bars if bar.n]
    (15, (16384, 32767), [2, 1])
    """
    longest = max((bucket.least for bucket in spread.buckets), default=0)
    last = max(max(cap, longest, 1).bit_length(), _LEAST_BITS)
    first = max(1, last - N_BARS + 1)
    counts = dict.fromkeys(range(first, last + 1), 0)
    for bucket in spread.buckets:
        counts[min(last, max(first, max(1, bucket.least).bit_length()))] += bucket.n
    return tuple(
        Bar(least=0 if bits == first else 2 ** (bits - 1), upper=2**bits - 1, n=n)
        for bits, n in counts.items()
    )


def place_of(value: float, bars: tuple[Bar, ...]) -> float:
    """Return where a length stands among the bars: 0 at the left edge, 1 at the right one.

    >>> bars = histogram(Spread(), 16_384)
    >>> place_of(16_384, bars), place_of(12_288, bars), place_of(0, bars)
    (0.9333, 0.9, 0.0)
    """
    for n, bar in enumerate(bars):
        if value <= bar.upper:
            inside = (value - bar.least) / (bar.upper + 1 - bar.least)
            return round((n + max(0.0, inside)) / len(bars), 4)
    return 1.0
