"""GET /runs/{run}/forecast: the same figures as `longwatch forecast --json`, and their range."""

from random import Random

import httpx
import pytest

from app.core.spread import Spread
from app.sizing import PartSize, sizes, tokens_band, total_tokens
from tests.api.home import Home

PROMPT_TOKENS = 4


def part(lengths: list[int], n_samples: int) -> PartSize:
    """Return a partition of which these answers are measured and the rest is to come."""
    return PartSize(
        name="p",
        n_samples=n_samples,
        n_left=n_samples - len(lengths),
        n_measured=len(lengths),
        lengths=Spread.of(lengths),
    )


async def test_a_run_is_forecast_from_what_is_measured(
    client: httpx.AsyncClient, home: Home
) -> None:
    home.keep("B1_chat", 3, tokens=50)

    told = (await client.get("/api/v1/runs/night/forecast")).json()

    n_tokens = home.n_samples * (50 + PROMPT_TOKENS)
    assert (told["tokens"], told["is_lower_bound"]) == (n_tokens, True)
    assert (told["tokens_low"], told["tokens_high"]) == (None, None)
    assert told["hidden_states_bytes"] == n_tokens * 57_360
    assert told["free_bytes"] > 0
    query = "hidden_size=10&layers=1&dtype=fp8&max_length=20"
    cut = (await client.get(f"/api/v1/runs/night/forecast?{query}")).json()
    assert (cut["tokens"], cut["bytes_per_token"]) == (home.n_samples * 20, 10 + 16)


@pytest.mark.parametrize(
    "query", ["hidden_size=0", "layers=0", "dtype=int4", "max_length=0", "hidden_size=x"]
)
async def test_what_cannot_be_is_refused(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"/api/v1/runs/night/forecast?{query}")
    assert answer.status_code == 422
    assert "--dtype" not in answer.text


async def test_an_unknown_run_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/v1/runs/nobody/forecast")).status_code == 404


def test_the_range_holds_in_eight_of_ten_runs() -> None:
    random, n_held, n_runs = Random(11), 0, 300
    for _ in range(n_runs):
        lengths = [round(random.lognormvariate(6, 1)) for _ in range(400)]
        band = tokens_band([part(lengths[:80], 400)])
        assert band is not None
        n_held += band[0] <= sum(lengths) <= band[1]
    assert 0.72 <= n_held / n_runs <= 0.88


def test_a_partition_that_is_hardly_measured_leaves_no_range() -> None:
    assert tokens_band([part([100] * 30, 90), part([100] * 19, 90)]) is None
    assert tokens_band([]) is None


def test_what_has_ended_has_no_range_left(home: Home) -> None:
    for name in home.names:
        home.keep(name, home.n_samples, tokens=50)
    parts = sizes(home.ledger, home.run_id)
    assert [each.n_left for each in parts] == [0, 0]
    assert total_tokens(parts) == 2 * home.n_samples * (50 + PROMPT_TOKENS)
    ended = [part(list(range(100, 200)), 100)]
    assert tokens_band(ended) == (total_tokens(ended), total_tokens(ended))
