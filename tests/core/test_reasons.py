"""Which reasons are one, and which failures a choice means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.reasons import Choice, form_of, group_of, lasting
from app.core.states import SampleState

FAILED = SampleState.FAILED


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("boom 12", "boom 4,013", True),
        ("request 7f3a9c01bd failed", "request 1b3a9c01bd22 failed", True),
        ("a 550e8400-e29b-41d4-a716-446655440000", "a 123e4567-e89b-12d3-a456-426614174000", True),
        ("at 0x7ffe", "at 0x0", True),
        ("boom\n  12", "boom 12", True),
        ("the server answered 400: x", "the server answered 500: x", False),
        ("deadbeef", "facade", False),
        ("boom", "bang", False),
    ],
)  # fmt: skip
def test_reasons_that_differ_only_in_numbers_are_one_group(
    one: str, other: str, is_same: bool
) -> None:
    assert (group_of(FAILED, one) == group_of(FAILED, other)) is is_same


def test_the_same_words_of_two_states_are_two_groups() -> None:
    assert group_of(FAILED, "x") != group_of(SampleState.REJECTED, "x")


@given(st.text(max_size=80))
def test_a_form_is_its_own_form(reason: str) -> None:
    assert form_of(form_of(reason)) == form_of(reason)


@pytest.mark.parametrize(
    ("state", "reason", "is_lasting"),
    [
        (SampleState.REJECTED, "broken JSON", True),
        (FAILED, "the server answered 400: longer than the context", True),
        (FAILED, "the server answered 413: too large", True),
        (FAILED, "the server died 3 times under this sample, last alone", True),
        (FAILED, "the server answered 500: context lost", False),
        (FAILED, "given up after 3 attempts: the server answered 400 and more", False),
        (SampleState.EMPTY, None, False),
        (SampleState.SUSPECT, None, False),
    ],
)
def test_what_a_retry_cannot_help_is_known(
    state: SampleState, reason: str | None, is_lasting: bool
) -> None:
    assert (lasting(state, reason) is not None) is is_lasting


def test_a_choice_takes_what_it_names() -> None:
    of_group = Choice(group=group_of(FAILED, "boom 1"))
    assert of_group.takes(FAILED, "boom 2")
    assert not of_group.takes(FAILED, "bang 2")
    assert not Choice(state=SampleState.EMPTY).takes(FAILED, "boom")
    assert not Choice(words="boom #").takes(FAILED, "bang 7")
    assert Choice(words="boom #").takes(FAILED, "boom 7")
    assert not Choice(is_sparing=True).takes(FAILED, "the server answered 422: x")
