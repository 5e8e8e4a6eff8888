"""From a reading and what came before it to the figures of a server's load.

Owns which counter a figure is taken from, best first. Invariant: what no counter tells is None.
"""

from dataclasses import replace

from app.core.counters_window import CounterWindow, Quantile, quantile
from app.core.loads import ServerLoad
from app.core.types import ServerFacts
from app.sglang.reading import Counter, Reading

SPEED_S = 60.0
HISTORY_S = 600.0
RECENT_S = 120.0  # as `core/effects.py` takes it to be
_HALF, _MOST = 0.5, 0.99


def figures_of(
    load: ServerLoad, reading: Reading, window: CounterWindow, facts: ServerFacts
) -> ServerLoad:
    """Return the load with all figures replaced by those of this reading and of the window."""
    waits = window.bucket_growth(HISTORY_S)
    half, most = quantile(waits, _HALF), quantile(waits, _MOST)
    lately = quantile(window.bucket_growth(RECENT_S), _HALF)
    retracted = window.growth([Counter.RETRACTED], HISTORY_S)
    return replace(
        load,
        source=reading.source,
        n_ranks=reading.n_ranks,
        running_requests=reading.running_requests,
        waiting_requests=reading.waiting_requests,
        max_running_requests=_first(reading.max_running_requests, facts.max_running),
        kv_capacity_tokens=_first(reading.kv_capacity_tokens, facts.kv_capacity_tokens),
        kv_used_tokens=reading.kv_used_tokens,
        kv_reclaimable_tokens=reading.kv_reclaimable_tokens,
        kv_free_tokens=reading.kv_free_tokens,
        used_ratio=reading.used_ratio,
        tokens_per_s=_tokens_per_s(reading, window),
        prefix_hit_ratio=_prefix_hit_ratio(reading, window),
        retracted_requests=None if retracted is None else round(retracted),
        first_token_p50_s=_value(half),
        first_token_p99_s=_value(most),
        first_token_p50_is_more=half is not None and half.is_more,
        first_token_p99_is_more=most is not None and most.is_more,
        recent_first_token_s=None if lately is None or lately.is_more else lately.value_s,
        n_first_tokens=round(max(waits.values())) if waits else None,
    )


def _tokens_per_s(reading: Reading, window: CounterWindow) -> float | None:
    if Counter.DECODED in reading.counters:
        return window.rate_per_s([Counter.DECODED], SPEED_S)
    return reading.throughput_tokens_per_s


def _prefix_hit_ratio(reading: Reading, window: CounterWindow) -> float | None:
    if Counter.HIT in reading.counters:
        return window.share([Counter.HIT], [Counter.MISSED], HISTORY_S)
    if Counter.CACHED in reading.counters:
        return window.share([Counter.CACHED], [Counter.COMPUTED], HISTORY_S)
    cached = window.growth([Counter.CACHED_ENDED], HISTORY_S)
    prompts = window.growth([Counter.PROMPT_ENDED], HISTORY_S)
    return min(1.0, cached / prompts) if cached is not None and prompts else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _value(found: Quantile | None) -> float | None:
    return None if found is None else found.value_s
