"""The measures of `/metrics`: how long answers take, as histograms that Prometheus can add up.

And what was adopted: those tokens are among the received ones, so `rate(received - adopted)` is the
speed whatever was taken over.

Owns the names and the bounds. Counts are of the whole run so far, from the ledger, so they never
fall and survive restarts. Invariant: each bound is a power of two in milliseconds, where a bucket
of the ledger begins, so the counts are exact; what was not measured is absent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import HistogramMetricFamily, Metric

from app.api.exposition_forms import PARTITION, counter
from app.core.spread import Measure, Spread
from app.figures import RunFigures
from app.ledger import measures
from app.ledger.db import Ledger

_BOUNDS_MS = tuple(2**octave for octave in range(4, 23))  # 16 ms to 70 minutes
TIMES = {
    Measure.FIRST_TOKEN: (
        "longwatch_first_token_seconds",
        "Time from sending a request to its first token.",
    ),
    Measure.LATENCY: (
        "longwatch_latency_seconds",
        "Time from sending a request to its end.",
    ),
}
Labelled = tuple[tuple[str, ...], Mapping[Measure, Spread], int]


def measured(ledger: Ledger, figures: Iterable[RunFigures]) -> list[Labelled]:
    """Return the times of each partition, and its adopted tokens, under its labels."""
    return [
        (
            (run.name, one.name),
            measures.spreads(ledger, one.id, tuple(TIMES)),
            measures.adopted_tokens(ledger, one.id),
        )
        for run in figures
        for one in run.partitions
    ]


def of_measures(rows: Sequence[Labelled]) -> Iterator[Metric]:
    """Yield a histogram per time, and the counter of what no worker has received."""
    yield counter(
        "longwatch_adopted_tokens",
        "Output tokens taken over from an earlier script; they count as received too.",
        [(labels, adopted or None) for labels, _, adopted in rows],
    )
    for kind, (name, about) in TIMES.items():
        family = HistogramMetricFamily(
            name, f"{about} Of answers that one request made whole.", labels=PARTITION
        )
        for labels, spreads, _ in rows:
            spread = spreads[kind]
            if spread.n:
                total_s = sum(bucket.total for bucket in spread.buckets) / 1000
                family.add_metric(labels, _cumulated(spread), total_s)
        yield family


def _cumulated(spread: Spread) -> list[tuple[str, float]]:
    bounded = [(str(bound / 1000), float(spread.n_below(bound))) for bound in _BOUNDS_MS]
    return [*bounded, ("+Inf", float(spread.n))]
