"""The tables behind duplicates, ids and samples, against the plain way to say the same."""

import doctest

from hypothesis import given
from hypothesis import strategies as st

from app.cli import prepare_progress
from app.sources import choosing, hub, readers, tally
from app.sources.choosing import FirstSeen, Sample, UniqueIds

KEYS = st.one_of(st.integers(-(2**63), -1), st.integers(2, 50).map(lambda n: n << 12))


@given(st.lists(KEYS), st.integers(0, 20), st.integers(0, 40))
def test_the_first_number_of_a_key_is_kept(keys: list[int], most: int, expected: int) -> None:
    """Also of keys that all want one slot, in a dict, in slots, and on the way to them."""
    seen, plain = FirstSeen(most), dict[int, int]()
    for number, key in enumerate(keys):
        if number == len(keys) // 2:
            seen.expect(expected)
        assert seen.get(key) == plain.get(key)
        assert seen.first(key, number) == plain.get(key)
        plain.setdefault(key, number)
        if number % 5 == 0:
            seen.set(key, number)
            plain[key] = number

    assert all(seen.get(key) == number for key, number in plain.items())


def test_slots_that_are_outgrown_lose_nothing() -> None:
    seen = FirstSeen(100)
    keys = [n * 0x9E3779B97F4A7C15 % 2**63 for n in range(1, 20_000)]

    assert [seen.first(key, number) for number, key in enumerate(keys)] == [None] * len(keys)
    assert [seen.get(key) for key in keys] == list(range(len(keys)))


@given(st.lists(st.sampled_from(["a", "a~2", "a~2~2", "b", "~2", ""])))
def test_ids_are_made_unique_and_the_first_keeps_its_own(wanted: list[str]) -> None:
    ids = UniqueIds()

    given = [ids.unique(one) for one in wanted]

    assert len(set(given)) == len(given)
    assert all(one.startswith(own) for own, one in zip(wanted, given, strict=True))
    firsts = {one: given[wanted.index(one)] for one in wanted}
    assert all(got == one or one.endswith("~2") for one, got in firsts.items())


@given(st.sets(st.integers(0, 10**6), max_size=300), st.integers(1, 300), st.integers(0, 9))
def test_a_sample_is_the_smallest_ranks(rows: set[int], n_wanted: int, seed: int) -> None:
    in_order = sorted(rows)
    taken = set(_taken(in_order, n_wanted, seed))

    assert len(taken) == min(n_wanted, len(rows))
    assert taken == set(_taken(in_order[::-1], n_wanted, seed))
    assert taken <= set(_taken(in_order, n_wanted + 1, seed))


def _taken(rows: list[int], n_wanted: int, seed: int) -> list[int]:
    sample = Sample(seed, "p", n_wanted)
    for row in rows:
        sample.offer(row)
    return [row for row, is_taken in zip(rows, sample.takes(), strict=True) if is_taken]


def test_partitions_and_seeds_choose_differently() -> None:
    def taken(seed: int, partition: str) -> list[bool]:
        sample = Sample(seed, partition, 50)
        for row in range(100):
            sample.offer(row)
        return list(sample.takes())

    assert taken(0, "p") == taken(0, "p")
    assert taken(0, "p") != taken(1, "p")
    assert taken(0, "p") != taken(0, "q")


def test_the_examples_are_true() -> None:
    for module in (choosing, hub, prepare_progress, readers, tally):
        assert doctest.testmod(module).failed == 0
        assert doctest.testmod(module).attempted
