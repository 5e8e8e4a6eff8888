"""The division of reasoning and answer: by ids, in the cases that parsers of text get wrong."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.reasoning import NO_REASONING, Reasoning, ReasoningMarks, divide, prompt_opens

OPEN, CLOSE, TOOLS = 1, 2, 3
MARKS = ReasoningMarks(opening={OPEN}, closing={CLOSE}, tool_calls={TOOLS})
IDS = st.lists(st.integers(0, 9), max_size=30)


def ids(*values: int) -> "array[int]":
    return array("I", values)


@pytest.mark.parametrize(
    ("answer", "opened", "divided"),
    [
        (ids(7, CLOSE, 9), True, Reasoning(is_thinking=True, end=1, resume=2)),
        (ids(CLOSE, 9), True, Reasoning(is_thinking=True, end=0, resume=1)),
        (ids(OPEN, 7, CLOSE, 9), False, Reasoning(is_thinking=True, end=2, resume=3)),
        (ids(7, CLOSE, 9, CLOSE), True, Reasoning(is_thinking=True, end=1, resume=2)),
        (ids(7, TOOLS, 9), True, Reasoning(is_thinking=True, end=1, resume=1)),
        (ids(7, 8), True, Reasoning(is_thinking=True)),
        (ids(), True, Reasoning(is_thinking=True)),
        (ids(7, CLOSE, 9), False, NO_REASONING),  # a mark in an answer that does not think
        (ids(7, OPEN, 8, CLOSE), False, NO_REASONING),  # it speaks of reasoning
        (ids(), False, NO_REASONING),
    ],
)
def test_answers_are_divided(answer: "array[int]", opened: bool, divided: Reasoning) -> None:
    assert divide(answer, MARKS, opened_by_prompt=opened) == divided


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [
        (ids(5, OPEN), True),
        (ids(5, OPEN, CLOSE), False),  # the template that says: do not think
        (ids(OPEN, 5, CLOSE, 6), False),
        (ids(OPEN, CLOSE, 6, OPEN), True),
        (ids(5, 6), False),
        (ids(), False),
    ],
)
def test_what_a_prompt_opens(prompt: "array[int]", opens: bool) -> None:
    assert prompt_opens(prompt, MARKS) == opens


@given(answer=IDS, opened=st.booleans())
def test_the_parts_and_the_mark_between_them_are_the_answer(
    answer: list[int], opened: bool
) -> None:
    found = divide(array("I", answer), MARKS, opened_by_prompt=opened)

    if found.end is None or found.resume is None:
        assert found.end is found.resume is None
    else:
        assert found.is_thinking
        between = answer[found.end : found.resume]
        assert answer[: found.end] + between + answer[found.resume :] == answer
        assert between in ([CLOSE], [])
        assert not {CLOSE, TOOLS} & set(answer[: found.end])
