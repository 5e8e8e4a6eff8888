"""OpenCodeInstruct (nvidia): a task in `input`; answer, scores and tests stand beside it."""

from app.sources.contract import Conversation, Recipe, Row
from app.sources.turns import single


def read(row: Row) -> Conversation:
    return single(row, "input", "id")


RECIPE = Recipe(
    name="opencodeinstruct",
    about="OpenCodeInstruct: coding tasks, several answers to one task",
    columns=frozenset({"id", "input", "output", "domain", "generation_algorithm"}),
    read=read,
)
