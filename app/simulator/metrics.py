"""The text of /metrics, in the names, labels and types of the version that is set (0.5.6 on).

Owns the exposition; every figure comes from the engine and the counters. Scheduler series carry
engine_type, model_name and ranks, tokenizer series is_streaming. As in the real server, a series
that is counted by mode or only now and then is there from its first count on.
"""

from collections.abc import Iterator

from app.simulator.counters import TTFT_BUCKETS_S
from app.simulator.machine import Machine

_SINCE: dict[str, tuple[int, ...]] = {
    "realtime_tokens_total": (0, 5, 9),
    "decode_sum_seq_lens": (0, 5, 9),
    "num_retracted_requests_total": (0, 5, 9),
    "num_retracted_input_tokens_total": (0, 5, 9),
    "num_retracted_output_tokens_total": (0, 5, 9),
    "full_token_usage": (0, 5, 10),
    "kv_available_tokens": (0, 5, 12),
    "kv_evictable_tokens": (0, 5, 12),
    "kv_used_tokens": (0, 5, 12),
    "context_len": (0, 5, 12),
    "prefill_effective_tokens_total": (0, 5, 18),
}
_STREAMING_LABEL_SINCE = (0, 5, 18)
LOADS_SINCE = (0, 5, 8)


def version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _labels(pairs: dict[str, str]) -> str:
    return ",".join(f'{name}="{pairs[name]}"' for name in sorted(pairs))


def _family(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP sglang:{name} {text}"
    yield f"# TYPE sglang:{name} {kind}"


class Exposition:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._model = {"engine_type": "unified", "model_name": machine.settings.model_name}
        self._version = version_numbers(machine.settings.version)

    def _has(self, name: str) -> bool:
        return self._version >= _SINCE.get(name, ())

    def _streams(self, *, stream: bool) -> dict[str, str]:
        has_label = self._version >= _STREAMING_LABEL_SINCE
        return self._model | ({"is_streaming": str(stream).lower()} if has_label else {})

    def text(self) -> str:
        lines = [*self._gauges(), *self._scheduler_counters(), *self._tokenizer(), *self._ttft()]
        return "\n".join(lines) + "\n"

    def _rank(self, rank: int = 0, **more: str) -> str:
        ranks = {"tp_rank": str(rank), "pp_rank": "0", "moe_ep_rank": str(rank)}
        return _labels(self._model | ranks | more)

    def _gauges(self) -> Iterator[str]:
        batch, settings = self._machine.engine.batch, self._machine.settings
        figures = self._machine.figures
        used, total = batch.used_tokens, settings.kv_tokens
        evictable = batch.cache.held_tokens(total - used)
        seen = figures.cached_tokens + figures.prefill_tokens
        hit_rate = figures.cached_tokens / seen if seen else 0.0
        decode = sum(j.prompt_tokens + j.made(batch.steps) for j in batch.running.values())
        speed = self._machine.engine.throughput_tokens_per_s
        gauges: tuple[tuple[str, str, float], ...] = (
            ("num_running_reqs", "The number of running requests.", len(batch.running)),
            ("num_queue_reqs", "The number of requests in the waiting queue.", len(batch.queue)),
            ("num_grammar_queue_reqs", "The number of requests in the grammar queue.", 0),
            ("num_used_tokens", "The number of used tokens.", used),
            ("token_usage", "The token usage.", round(used / total, 2)),
            ("full_token_usage", "The token usage of the full attention layers.", used / total),
            ("kv_available_tokens", "Number of free token slots.", total - used - evictable),
            ("kv_evictable_tokens", "Number of slots that the cache holds.", evictable),
            ("kv_used_tokens", "Number of used token slots in the pool.", used),
            ("gen_throughput", "The generation throughput (token/s).", round(speed, 3)),
            ("cache_hit_rate", "The prefix cache hit rate.", round(hit_rate, 4)),
            ("new_token_ratio", "The new token ratio.", round(batch.ratio, 4)),
            ("decode_sum_seq_lens", "The sum of all sequence lengths in decode.", decode),
            ("context_len", "Model context length in tokens.", settings.context_length),
            ("spec_accept_length", "The average acceptance length.", 0),
            ("utilization", "The utilization.", 0),
        )
        for name, text, value in gauges:
            if not self._has(name):
                continue
            yield from _family(name, "gauge", text)
            yield f"sglang:{name}{{{self._rank()}}} {float(value)}"
        yield from _family("max_total_num_tokens", "gauge", "Maximum total number of tokens.")
        for rank in range(settings.tensor_parallel_ranks):
            yield f"sglang:max_total_num_tokens{{{self._rank(rank)}}} {float(total)}"
        yield from _family("num_retracted_reqs", "gauge", "The number of retracted requests.")
        yield f"sglang:num_retracted_reqs{{{self._rank(pid='4242')}}} 0.0"

    def _scheduler_counters(self) -> Iterator[str]:
        figures = self._machine.figures
        computed, cached = figures.prefill_tokens, figures.cached_tokens
        modes = (("prefill_compute", computed), ("decode", figures.decode_tokens))
        yield from self._by_mode("realtime_tokens_total", *modes, ("prefill_cache", cached))
        hits = (("input", computed), ("device_hit", cached), ("host_hit", 0), ("storage_hit", 0))
        yield from self._by_mode("prefill_effective_tokens_total", *hits)
        for name, count in (
            ("num_retracted_requests_total", figures.retractions),
            ("num_retracted_input_tokens_total", figures.retracted_input_tokens),
            ("num_retracted_output_tokens_total", figures.retracted_output_tokens),
        ):
            if not count or not self._has(name):
                continue
            yield from _family(name, "counter", "Retraction, counted by every rank.")
            for rank in range(self._machine.settings.tensor_parallel_ranks):
                yield f"sglang:{name}{{{self._rank(rank)}}} {float(count)}"

    def _by_mode(self, name: str, *modes: tuple[str, int]) -> Iterator[str]:
        counted = [(mode, value) for mode, value in modes if value]
        if counted and self._has(name):
            yield from _family(name, "counter", "Total number of tokens, by mode.")
            for mode, value in counted:
                yield f"sglang:{name}{{{self._rank(mode=mode)}}} {float(value)}"

    def _tokenizer(self) -> Iterator[str]:
        finished = self._machine.figures.finished
        families = (
            (2, "generation_tokens_total", "Number of generation tokens processed."),
            (1, "prompt_tokens_total", "Number of prefill tokens processed."),
            (0, "num_requests_total", "Number of requests processed."),
        )
        for place, name, text in families:
            yield from _family(name, "counter", text)
            totals: dict[str, int] = {}
            for stream, figures in finished.items():
                labels = _labels(self._streams(stream=stream))
                totals[labels] = totals.get(labels, 0) + figures[place]
            for labels, total in totals.items():
                yield f"sglang:{name}{{{labels}}} {float(total)}"
        yield from _family("num_aborted_requests_total", "counter", "Number of requests aborted.")
        aborts = float(self._machine.figures.abort_calls)
        yield f"sglang:num_aborted_requests_total{{{_labels(self._model)}}} {aborts}"

    def _ttft(self) -> Iterator[str]:
        figures, name = self._machine.figures, "time_to_first_token_seconds"
        model = self._streams(stream=True)
        yield from _family(name, "histogram", "Histogram of time to first token in seconds.")
        yield f"sglang:{name}_sum{{{_labels(model)}}} {figures.ttft_sum_s}"
        total = 0
        limits = (*map(str, TTFT_BUCKETS_S), "+Inf")
        for limit, count in zip(limits, figures.ttft_counts, strict=True):
            total += count
            yield f"sglang:{name}_bucket{{{_labels(model | {'le': limit})}}} {float(total)}"
        yield f"sglang:{name}_count{{{_labels(model)}}} {float(total)}"


def metrics_text(machine: Machine) -> str:
    return Exposition(machine).text()
