"""The model behaves like the server that its docstring names."""

import statistics
from random import Random

import pytest

from benchmarks.server_model import ModelServer, Request, lognormal_lengths


def speed(n_in_flight: int) -> float:
    server = ModelServer(kv_tokens=10_000_000)
    for _ in range(n_in_flight):
        server.submit(Request(1, 2000, 2000))
    server.advance(10.0)
    return server.made_tokens / server.now_s


@pytest.mark.parametrize(("n_in_flight", "tokens_per_s"), [(1, 90), (32, 1000), (150, 1350)])
def test_speed_at_three_concurrencies(n_in_flight: int, tokens_per_s: int) -> None:
    assert speed(n_in_flight) == pytest.approx(tokens_per_s, rel=0.05)


def test_every_request_ends_once_at_its_length_also_when_kv_runs_out() -> None:
    lengths = lognormal_lengths(Random(1), mean=1500, cap=6000, n=200)
    server = ModelServer(kv_tokens=30_000)
    for length in lengths:
        server.submit(Request(100, length, 6000))

    finished = []
    while server.n_in_flight:
        finished += server.advance(server.now_s + 5)

    assert sorted(request.length_tokens for request in finished) == sorted(lengths)
    assert all(request.n_admitted >= 1 for request in finished)
    assert server.made_tokens == sum(lengths)
    assert server.used_tokens == 0
    assert server.n_retracted > 0


def test_lengths_have_the_mean_asked_for_and_stay_within_the_cap() -> None:
    lengths = lognormal_lengths(Random(1), mean=4000, cap=16_384, n=20_000)

    assert statistics.fmean(lengths) == pytest.approx(4000, rel=0.02)
    assert max(lengths) == 16_384
