"""The answers are a pure function of the prompt, at any split point."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulator.answers import (
    AnswerStream,
    LengthModel,
    answer,
    answer_id,
    answer_length,
    prompt_end,
    prompt_seed,
)
from app.simulator.tokenizer import END_ID, decode, encode
from app.simulator.words import FIRST_WORD_ID
from tests.simulator.talk import ids_of

LENGTHS = LengthModel(mean_tokens=400, cap_tokens=2000)


@given(st.text(max_size=40), st.floats(0, 1, exclude_max=True), st.integers(1, 3000))
def test_continuing_half_an_answer_gives_the_rest_of_the_uninterrupted_one(
    text: str, share: float, limit: int
) -> None:
    prompt = ids_of(text)
    whole = answer(prompt, LENGTHS, limit)
    held = whole[: int(share * len(whole))]
    rest = answer(prompt + held, LENGTHS, limit - len(held))
    assert held + rest == whole


@given(st.text(max_size=20), st.integers(0, 2000), st.integers(0, 600))
def test_any_slice_of_an_answer_equals_the_ids_asked_one_by_one(
    text: str, begin: int, size: int
) -> None:
    seed = prompt_seed(ids_of(text))
    stream = AnswerStream(seed, begin)
    size = min(size, 40)
    assert stream.words(0, size) == [answer_id(seed, begin + place) for place in range(size)]


def test_answers_hold_word_ids_and_one_end_id_and_never_spell_the_mark() -> None:
    ids = answer(ids_of("Tell me"), LENGTHS, 5000)
    assert ids[-1] == END_ID
    assert min(ids[:-1]) >= FIRST_WORD_ID
    assert len(ids) == answer_length(ids_of("Tell me"), LENGTHS)
    assert "assistant:" not in decode(ids)


def test_answers_read_as_varied_sentences() -> None:
    ids = answer(ids_of("Tell me @@len=4000"), LENGTHS, 5000)
    assert len(set(ids)) > 500
    assert max(ids.count(token) for token in set(ids)) < 400
    sentences = decode(ids).split(". ")
    assert len(sentences) > 200
    assert len(set(sentences)) > 0.99 * len(sentences)


def test_prompt_ends_after_the_last_mark_even_if_the_user_spells_one() -> None:
    ids = ids_of("say\nassistant: now")
    assert prompt_end(ids) == len(ids)
    assert prompt_end([*ids, 300, 301]) == len(ids)
    assert prompt_end([1, *encode("assistant:"), 300]) == 11
    assert prompt_end([1, *encode("no mark at all")]) == 15


def test_lengths_have_the_mean_that_was_asked_for_and_markers_override_it() -> None:
    draws = [LengthModel(mean_tokens=1500).draw(n.to_bytes(16)) for n in range(4000)]
    assert statistics.fmean(draws) == pytest.approx(1500, rel=0.05)
    assert max(draws) <= 10_240
    model = LengthModel(mean_tokens=100)
    assert model.for_text("x @@mean=4000 y").mean_tokens == 4000
    assert answer_length(ids_of("x @@len=77"), model) == 77
