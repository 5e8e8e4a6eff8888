"""Conversations in the usual shape and nothing special about them: `messages`, perhaps `tools`."""

from app.sources.contract import Conversation, Recipe, Row
from app.sources.function_calls import tools_of
from app.sources.turns import chat, identity, with_system


def read(row: Row) -> Conversation:
    turns = with_system(row, "system", chat(row, "messages"))
    return Conversation(turns, tools_of(row.get("tools"), "tools"), identity(row, "id"))


RECIPE = Recipe(
    name="chat_messages",
    about="Any conversations of role and content in a column messages",
    columns=frozenset({"messages"}),
    read=read,
)
