"""Families of the exposition from rows of labels and values; what is not known has no row."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

PARTITION = ("run", "partition")
Row = tuple[tuple[str, ...], float | None]


def gauge(name: str, about: str, labels: tuple[str, ...], rows: Iterable[Row]) -> Metric:
    family = GaugeMetricFamily(name, about, labels=labels)
    for values, n in rows:
        if n is not None:
            family.add_metric(values, n)
    return family


def counter(name: str, about: str, rows: Iterable[Row]) -> Metric:
    """Return a counter of partitions; the library adds `_total` to its name."""
    family = CounterMetricFamily(name, about, labels=PARTITION)
    for values, n in rows:
        if n is not None:
            family.add_metric(values, n)
    return family
