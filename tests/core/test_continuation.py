"""How much of an unfinished answer the next attempt may build on."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import continuation
from app.core.continuation import continuable_tokens, may_continue, stop_tail_tokens
from app.core.types import Segment

GEN = "gen-one"


def segment(gen_id: str = GEN, from_token: int = 0) -> Segment:
    return Segment(from_token=from_token, rid="r", server="s", gen_id=gen_id)


@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"temperature": 0.7, "top_p": 0.95, "top_k": 20, "min_p": 0.1},
        {"frequency_penalty": 0, "presence_penalty": 0.0, "repetition_penalty": 1},
        {"repetition_penalty": 1.0, "regex": None, "json_schema": None},
        {"stop_token_ids": [1, 2], "ignore_eos": True, "min_new_tokens": 5},
    ],
)
def test_what_does_not_count_over_the_boundary_may_be_continued(
    sampling: dict[str, object],
) -> None:
    assert may_continue(sampling)
    assert continuable_tokens(30, [segment()], GEN, sampling) == 30


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("frequency_penalty", 0.1),
        ("frequency_penalty", -0.1),
        ("presence_penalty", 1),
        ("repetition_penalty", 1.01),
        ("repetition_penalty", 0.9),
        ("json_schema", '{"type": "object"}'),
        ("regex", "[a-z]+"),
        ("ebnf", "root ::= x"),
        ("stop_regex", "x+"),
    ],
)
def test_penalties_and_grammars_may_not(name: str, value: object) -> None:
    assert not may_continue({"temperature": 1.0, name: value})
    assert continuable_tokens(30, [segment()], GEN, {name: value}) == 0


def test_every_segment_must_be_of_the_same_generation() -> None:
    mixed = [segment(), segment("gen-two", 10), segment(from_token=20)]

    assert continuable_tokens(30, mixed, GEN, {}) == 0
    assert continuable_tokens(30, [segment("gen-two")], "gen-two", {}) == 30


@pytest.mark.parametrize(
    ("stop", "n"),
    [
        (None, 0),
        ([], 0),
        ("", 0),
        ("User:", 5),
        (["a", "abc", "ab"], 3),
        (("é",), 2),
        (["終わり"], 9),
    ],
)
def test_the_tail_is_as_long_as_the_longest_stop_string_in_bytes(stop: object, n: int) -> None:
    assert stop_tail_tokens({"stop": stop}) == n
    assert continuable_tokens(30, [segment()], GEN, {"stop": stop}) == 30 - n


@given(
    n_held=st.integers(0, 10_000),
    stop=st.lists(st.text(max_size=40), max_size=4),
    gen_id=st.sampled_from([GEN, "other"]),
)
def test_what_stays_is_never_more_than_was_held(n_held: int, stop: list[str], gen_id: str) -> None:
    kept = continuable_tokens(n_held, [segment()], gen_id, {"stop": stop})

    assert 0 <= kept <= n_held
    assert gen_id == GEN or kept == 0


def test_the_examples_are_true() -> None:
    assert doctest.testmod(continuation).failed == 0
