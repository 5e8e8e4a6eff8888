"""How concurrency is divided."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.shares import Need, split_class, split_servers

NEEDS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2),
    st.builds(Need, n_open=st.integers(0, 300), own=st.none() | st.integers(0, 100)),
    max_size=8,
)


@pytest.mark.parametrize(
    ("limit", "needs", "shares"),
    [
        (150, [(900, None), (900, None), (900, None)], [50, 50, 50]),
        (32, [(900, None), (900, None), (900, None)], [11, 11, 10]),
        (32, [(900, 10), (900, None), (900, None)], [10, 11, 11]),
        (32, [(900, None), (4, None), (900, None)], [14, 4, 14]),
        (32, [(900, None), (0, None), (900, None)], [16, 0, 16]),
        (2, [(900, None), (900, None), (900, None)], [1, 1, 0]),
        (32, [(900, 40), (900, None)], [40, 0]),
        (32, [(3, 20), (900, None)], [3, 29]),
        (0, [(900, None)], [0]),
        (100, [(5, None), (7, None)], [5, 7]),
        (8, [], []),
    ],
)
def test_a_class_is_shared(
    limit: int, needs: list[tuple[int, int | None]], shares: list[int]
) -> None:
    partitions = {f"B{i}": Need(n_open=n, own=own) for i, (n, own) in enumerate(needs)}

    assert list(split_class(limit, partitions).values()) == shares


@given(limit=st.integers(0, 400), needs=NEEDS)
def test_shares_stay_within_the_limit_and_the_work(limit: int, needs: dict[str, Need]) -> None:
    shares = split_class(limit, needs)
    own = sum(shares[name] for name, need in needs.items() if need.own is not None)

    assert list(shares) == list(needs)
    assert sum(shares.values()) <= max(limit, own)
    assert all(0 <= shares[name] <= need.n_open for name, need in needs.items())
    for name, need in needs.items():
        if need.own is not None:
            assert shares[name] == min(need.own, need.n_open)


@given(limit=st.integers(0, 400), needs=NEEDS)
def test_nothing_is_left_unused_and_none_is_poorer_by_two(
    limit: int, needs: dict[str, Need]
) -> None:
    shares = split_class(limit, needs)
    hungry = {name for name, need in needs.items() if need.own is None}
    wanting = [shares[name] for name in hungry if shares[name] < needs[name].n_open]

    if wanting:
        assert sum(shares.values()) >= limit
        assert max(shares[name] for name in hungry) - min(wanting) <= 1
        own = sum(share for name, share in shares.items() if name not in hungry)
        if limit - own >= len(hungry):
            assert min(wanting) >= 1


@given(limit=st.integers(-5, 5000), n=st.integers(1, 40))
def test_servers_get_equal_parts_that_sum_to_the_limit(limit: int, n: int) -> None:
    parts = split_servers(limit, n)

    assert len(parts) == n
    assert sum(parts) == max(0, limit)
    assert max(parts) - min(parts) <= 1
