"""UltraChat 200k: conversations of several turns; `prompt` says the first user turn once more."""

from app.sources.contract import Conversation, Recipe, Row
from app.sources.turns import chat, identity, single


def read(row: Row) -> Conversation:
    turns = chat(row, "messages")
    if not turns:
        return single(row, "prompt", "prompt_id")
    return Conversation(turns, None, identity(row, "prompt_id"))


RECIPE = Recipe(
    name="ultrachat",
    about="UltraChat 200k: conversations of several turns",
    columns=frozenset({"prompt", "prompt_id"}),
    read=read,
)
