"""What a server's /metrics says of its load, across versions, as one reading.

Owns metric names, labels and ranks (0.4.9 to 0.5.23). Invariants: series of data-parallel ranks,
tenants and unknown labels are added up, those that several tensor ranks repeat are taken once;
what is not told is None, never 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from app.core.loads import LoadSource
from app.errors import ServerError
from app.sglang.reading import Counter, Reading

_MARK = "sglang:"
_FIRST_TOKEN = "time_to_first_token_seconds_bucket"  # noqa: S105 - a metric's name
_RUNNING = "num_running_reqs"
_RETRACTIONS = "num_retracted_requests_total"
# Others are many and long; what is not read is not parsed either.
_GAUGES = (
    _RUNNING,
    "num_queue_reqs",
    "max_total_num_tokens",
    "cache_config_info",
    "num_used_tokens",
    "kv_used_tokens",
    "kv_evictable_tokens",
    "kv_available_tokens",
    "token_usage",
    "full_token_usage",
    "gen_throughput",
)


_FAMILIES: Mapping[str, Mapping[Counter, tuple[str, ...]]] = {
    "realtime_tokens_total": {
        Counter.DECODED: ("decode",),
        Counter.COMPUTED: ("prefill_compute",),
        Counter.CACHED: ("prefill_cache",),
    },
    "prefill_effective_tokens_total": {
        Counter.MISSED: ("input",),
        Counter.HIT: ("device_hit", "host_hit", "storage_hit"),
    },
}
_PLAIN_COUNTERS = {
    Counter.PROMPT_ENDED: "prompt_tokens_total",
    Counter.GENERATED_ENDED: "generation_tokens_total",
    Counter.ENDED: "num_requests_total",
    Counter.RETRACTED: _RETRACTIONS,
}
_CACHED_ENDED = "cached_tokens_total"
_READ = frozenset(
    f"{_MARK}{name}"
    for name in (*_GAUGES, *_FAMILIES, *_PLAIN_COUNTERS.values(), _CACHED_ENDED, _FIRST_TOKEN)
)


_Series = Mapping[str, Sequence[Sample]]


def read_metrics(text: str) -> Reading | None:
    """Return what the text says, None if it has no series of a server's load.

    ServerError if it has some that cannot be read.
    """
    series: _Series = _series(text)
    if not series:
        return None
    used = series.get("kv_used_tokens") or series.get("num_used_tokens", ())
    ratios = series.get("full_token_usage") or series.get("token_usage", ())
    counters = _counters(series)
    return Reading(
        source=LoadSource.METRICS,
        n_ranks=_n_ranks(series),
        running_requests=_whole(_total(series.get(_RUNNING, ()))),
        waiting_requests=_whole(_total(series.get("num_queue_reqs", ()))),
        kv_capacity_tokens=_capacity(series),
        kv_used_tokens=_whole(_total(used)),
        kv_reclaimable_tokens=_whole(_total(series.get("kv_evictable_tokens", ()))),
        kv_free_tokens=_whole(_total(series.get("kv_available_tokens", ()))),
        used_ratio=max((sample.value for sample in ratios), default=None),
        throughput_tokens_per_s=_total(series.get("gen_throughput", ())),
        counters=counters,
        first_tokens=_first_tokens(series.get(_FIRST_TOKEN, ())),
        progress=_progress(series, counters),
    )


def _series(text: str) -> dict[str, list[Sample]]:
    """Return the samples that are read here, by name without the mark."""
    lines = [line for line in text.splitlines() if line.partition("{")[0].split(" ")[0] in _READ]
    found: dict[str, list[Sample]] = {}
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                if isfinite(sample.value):
                    found.setdefault(sample.name.removeprefix(_MARK), []).append(sample)
    except ValueError as error:
        raise ServerError(f"/metrics cannot be read ({str(error)[:80]})") from error
    return found


def _total(samples: Iterable[Sample]) -> float | None:
    """Add up what differs in more than the rank that wrote it; None if there is nothing."""
    samples = list(samples)
    if any(sample.labels.get("priority") == "" for sample in samples):
        samples = [sample for sample in samples if not sample.labels.get("priority")]
    groups: dict[frozenset[tuple[str, str]], list[Sample]] = {}
    for sample in samples:
        own = frozenset(pair for pair in sample.labels.items() if not _is_repeated(pair[0]))
        groups.setdefault(own, []).append(sample)
    return sum(_once(group) for group in groups.values()) if groups else None


def _is_repeated(label: str) -> bool:
    """Return whether series that differ in this label only tell of the same thing."""
    return label == "pid" or (label.endswith("_rank") and label != "dp_rank")


def _once(group: Sequence[Sample]) -> float:
    first = [sample for sample in group if sample.labels.get("tp_rank", "0") == "0"]
    return max(sample.value for sample in first or group)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _n_ranks(series: _Series) -> int | None:
    samples = series.get(_RUNNING) or series.get("max_total_num_tokens", ())
    return len({sample.labels.get("dp_rank", "") for sample in samples}) or None


def _capacity(series: _Series) -> int | None:
    told = _whole(_total(series.get("max_total_num_tokens", ())))
    if told is not None:
        return told
    for sample in series.get("cache_config_info", ()):  # 0.5.9 and 0.5.10, of one rank
        pages, size = sample.labels.get("num_pages", ""), sample.labels.get("page_size", "")
        if pages.isdecimal() and size.isdecimal():
            return int(pages) * int(size) * (_n_ranks(series) or 1)
    return None


def _counters(series: _Series) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, parts in _FAMILIES.items():
        if name not in series:
            continue
        for counter, modes in parts.items():
            of_it = [s for s in series[name] if s.labels.get("mode") in modes]
            found[counter] = _total(of_it) or 0.0  # a mode has a series from its first token on
    for counter, name in _PLAIN_COUNTERS.items():
        total = _total(series.get(name, ()))
        if total is not None:
            found[counter] = total
        elif counter is Counter.RETRACTED and Counter.DECODED in found:
            found[counter] = 0.0  # as old as the family above, and there from the first one on
    cached = _cached_ended(series.get(_CACHED_ENDED, ()))
    if cached is not None:
        found[Counter.CACHED_ENDED] = cached
    return found


def _cached_ended(samples: Sequence[Sample]) -> float | None:
    whole = [sample for sample in samples if sample.labels.get("cache_source") == "total"]
    return _total(whole or samples)


def _first_tokens(samples: Sequence[Sample]) -> dict[float, float]:
    limits: dict[float, list[Sample]] = {}
    for sample in samples:
        try:
            limit = float(sample.labels.get("le", ""))
        except ValueError:
            continue
        limits.setdefault(limit, []).append(sample)
    return {limit: _total(of_it) or 0.0 for limit, of_it in limits.items()}


def _progress(series: _Series, counters: Mapping[str, float]) -> tuple[object, ...]:
    """Return what moves with the scheduler: exact where tokens are counted as they are made."""
    if Counter.DECODED in counters:
        return tuple(counters[c] for c in (Counter.DECODED, Counter.COMPUTED, Counter.CACHED))
    told = (_total(series.get(name, ())) for name in ("num_used_tokens", "gen_throughput"))
    return (*told, counters.get(Counter.GENERATED_ENDED))
