"""ShareGPT: conversations cut into chunks, so that one can begin with an answer.

Forks have more columns (`system`, `tools`) and more keys in a turn; the two columns are read.
"""

from app.sources.contract import Conversation, Recipe, Row
from app.sources.function_calls import tools_of
from app.sources.turns import chat, identity, with_system


def read(row: Row) -> Conversation:
    turns = with_system(row, "system", chat(row, "conversations"))
    return Conversation(turns, tools_of(row.get("tools"), "tools"), identity(row, "id"))


RECIPE = Recipe(
    name="sharegpt",
    about="ShareGPT and its many forks: conversations of from and value",
    columns=frozenset({"conversations"}),
    read=read,
)
