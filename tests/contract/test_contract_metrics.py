"""The contract's metrics that the server panel is read from: pool, decoded tokens, prefills, waits.

Every test needs --enable-metrics, which the recipe's server and the simulator have.
"""

import re

import httpx

from tests.contract.exchange import (
    generate,
    live_stream,
    metric_sum,
    request_body,
    running_requests,
    wait_until,
)

POOL = ("sglang:kv_used_tokens", "sglang:kv_evictable_tokens", "sglang:kv_available_tokens")
DECODED = 'sglang:realtime_tokens_total{[^}]*mode="decode"'


def labelled_sum(client: httpx.Client, pattern: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if re.match(pattern, line))


def test_used_reclaimable_and_free_slots_are_the_whole_pool(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    generate(client, prompt_ids, max_new_tokens=24)
    capacity = client.get("/server_info").json()["max_total_num_tokens"]

    wait_until(lambda: metric_sum(client, POOL[1]) > 0, "what has ended can be reclaimed")

    assert metric_sum(client, "sglang:max_total_num_tokens") == capacity
    assert sum(metric_sum(client, name) for name in POOL) == capacity


def test_decoded_tokens_are_counted_while_they_are_made(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    generate(client, prompt_ids, max_new_tokens=8)
    wait_until(lambda: running_requests(client) == 0, "an idle server")
    before, n = labelled_sum(client, DECODED), 900
    with live_stream(client, request_body(prompt_ids, max_new_tokens=n)) as stream:
        next(stream)
        wait_until(lambda: labelled_sum(client, DECODED) > before, "tokens of a request that runs")
        for _ in stream:
            pass
    # The first token of an answer may come from the prefill, and is then counted there.
    wait_until(lambda: labelled_sum(client, DECODED) >= before + n - 1, f"{n} tokens")
    assert labelled_sum(client, DECODED) <= before + n


def test_a_prefill_is_counted_by_what_the_cache_held_of_it(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    generate(client, prompt_ids, max_new_tokens=2)
    hit = 'sglang:prefill_effective_tokens_total{[^}]*mode="device_hit"'
    cached = 'sglang:realtime_tokens_total{[^}]*mode="prefill_cache"'
    before = labelled_sum(client, hit), labelled_sum(client, cached)

    generate(client, prompt_ids, max_new_tokens=2)

    wait_until(lambda: labelled_sum(client, hit) > before[0], "a hit")
    grown = labelled_sum(client, hit) - before[0]
    assert 0 < grown < len(prompt_ids)
    assert labelled_sum(client, cached) - before[1] == grown


def test_the_wait_for_a_first_token_is_counted_once_for_each_stream(
    client: httpx.Client, prompt_ids: list[int]
) -> None:
    name = "sglang:time_to_first_token_seconds_count"
    top = 'sglang:time_to_first_token_seconds_bucket{[^}]*le="\\+Inf"'
    with live_stream(client, request_body(prompt_ids, max_new_tokens=4)) as stream:
        assert len(list(stream)) > 0
    before = metric_sum(client, name)
    with live_stream(client, request_body(prompt_ids, max_new_tokens=4)) as stream:
        assert len(list(stream)) > 0

    wait_until(lambda: metric_sum(client, name) == before + 1, "one more")
    assert labelled_sum(client, top) == before + 1
