"""Answers as conversations: reasoning inline, the mark that the prompt had opened put back."""

from dataclasses import replace

import pytest

from app.core.reasoning import NO_REASONING, Reasoning
from app.export.choosing import Finish
from app.export.conversations import answer_of
from app.export.records import Example

PLAIN = Example(
    partition="p", key="k", native="k", source="", prompt=[1], answer=[2], finish=Finish.STOP,
    stop_id=2, is_regenerated=True, reasoning=NO_REASONING, prompt_sha256="", flags=(),
    gen_id="g", metadata={},
)  # fmt: skip
CLOSED = Reasoning(is_thinking=True, end=3, resume=4)


@pytest.mark.parametrize(
    ("text", "reasoning", "said"),
    [
        ("so", NO_REASONING, "so"),
        ("They greet.</think>Hi!", CLOSED, "<think>They greet.</think>Hi!"),
        ("<think>They greet.</think>Hi!", CLOSED, "<think>They greet.</think>Hi!"),
        ("They gr", Reasoning(is_thinking=True), "<think>They gr"),
        ("</think> is a mark", NO_REASONING, "</think> is a mark"),
        (None, NO_REASONING, None),
    ],
    ids=["plain", "opened by the prompt", "opened", "unclosed", "no mark", "no text"],
)
def test_what_an_answer_says(text: str | None, reasoning: Reasoning, said: str | None) -> None:
    assert answer_of(replace(PLAIN, text=text, reasoning=reasoning)) == said
