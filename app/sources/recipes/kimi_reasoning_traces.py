"""Kimi reasoning traces: a problem, Kimi's reasoning and its answer, each in a column."""

from app.sources.contract import Conversation, Gives, Message, Recipe, Row
from app.sources.turns import identity, text


def read(row: Row) -> Conversation:
    answer: Message = {"role": "assistant", "content": text(row, "response")}
    answer["reasoning_content"] = text(row, "thinking")
    asked: Message = {"role": "user", "content": text(row, "problem")}
    return Conversation([asked, answer], None, identity(row, "id"))


RECIPE = Recipe(
    name="kimi_reasoning_traces",
    about="Kimi reasoning traces: answered problems with reasoning",
    columns=frozenset({"problem", "thinking", "response"}),
    read=read,
    gives=Gives.ANSWERS,
)
