"""Magicoder OSS-Instruct: a coding problem grown from a snippet of code.

`seed` is that snippet, no seed of a random generator. `raw_index` and `index` together name a row.
"""

from app.sources.contract import Conversation, Recipe, Row
from app.sources.turns import identity, single


def read(row: Row) -> Conversation:
    raw_index, index = identity(row, "raw_index"), identity(row, "index")
    native_id = f"{raw_index}-{index}" if raw_index and index else None
    return Conversation(single(row, "problem").messages, None, native_id)


RECIPE = Recipe(
    name="magicoder_oss",
    about="Magicoder OSS-Instruct: coding problems; only the problem is asked",
    columns=frozenset({"lang", "raw_index", "index", "problem", "solution"}),
    read=read,
)
