"""Magicoder Evol-Instruct: an instruction and its response, without an id."""

from app.sources.contract import Conversation, Recipe, Row
from app.sources.turns import single


def read(row: Row) -> Conversation:
    return single(row, "instruction")


RECIPE = Recipe(
    name="magicoder_evol",
    about="Magicoder Evol-Instruct: coding instructions",
    columns=frozenset({"instruction", "response"}),
    read=read,
)
