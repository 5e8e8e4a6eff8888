"""OpenThoughts: questions whose system prompt orders a format of its own for the reasoning.

That system prompt is dropped: the target model would obey it, and its answers would be in another
format than its own.
"""

from app.sources.contract import Conversation, Recipe, Row
from app.sources.turns import chat

_ORDERS_ITS_FORMAT = "<|begin_of_thought|>"


def read(row: Row) -> Conversation:
    return Conversation(chat(row, "conversations"))


def fits(row: Row) -> bool:
    """Whether the system text may be dropped: another one than theirs means something."""
    system = row.get("system")
    return not system or (isinstance(system, str) and _ORDERS_ITS_FORMAT in system)


RECIPE = Recipe(
    name="openthoughts",
    about="OpenThoughts: reasoning questions; the system prompt is dropped",
    columns=frozenset({"system", "conversations"}),
    read=read,
    fits=fits,
)
