"""Glaive code assistant: a question about code and its answer, without an id."""

from app.sources.contract import Conversation, Recipe, Row
from app.sources.turns import single


def read(row: Row) -> Conversation:
    return single(row, "question")


RECIPE = Recipe(
    name="glaive_code_assistant",
    about="Glaive code assistant: questions about code",
    columns=frozenset({"question", "answer"}),
    read=read,
)
