"""Rows made by TeichAI's datagen: answered conversations with the reasoning beside each answer.

It stands in `thinking`, or as `<think>…</think>` in front of the answer. There is no id. Other
files have only `messages` too, so a row without any reasoning is not taken for one of these.
"""

from app.sources.contract import Conversation, Gives, Recipe, Row, SkippedError
from app.sources.thinking import split_thinking
from app.sources.turns import chat


def read(row: Row) -> Conversation:
    return Conversation(chat(row, "messages"))


def fits(row: Row) -> bool:
    """Whether an answer of the row has reasoning."""
    try:
        turns = chat(row, "messages")
    except SkippedError:
        return False
    return any("reasoning_content" in turn or _thinks(turn.get("content")) for turn in turns)


def _thinks(content: object) -> bool:
    return isinstance(content, str) and split_thinking(content)[0] != ""


RECIPE = Recipe(
    name="datagen_thinking",
    about="datagen's files, as of Kimi K2.5: answered conversations with reasoning",
    columns=frozenset({"messages"}),
    read=read,
    gives=Gives.ANSWERS,
    fits=fits,
)
