"""Mixture-of-Thoughts (open-r1): conversations whose answers begin with their reasoning."""

from app.sources.contract import Conversation, Recipe, Row
from app.sources.turns import chat


def read(row: Row) -> Conversation:
    return Conversation(chat(row, "messages"))


RECIPE = Recipe(
    name="mixture_of_thoughts",
    about="Mixture-of-Thoughts: mathematics, code and science, answers with <think>",
    columns=frozenset({"messages", "num_tokens", "source"}),
    read=read,
)
