"""The recipe for any table: settings say which column is what, and no code is needed.

Owns the names that stand left of the `=` in `columns = { prompt = "question", id = "key" }`, and
what may be said there. With an `answer` the rows are answered already.
"""

from collections.abc import Mapping
from functools import partial

from app.core.spec_checks import as_shown, did_you_mean
from app.errors import InputError
from app.sources.contract import Conversation, Gives, Message, Recipe, Row
from app.sources.function_calls import tools_of
from app.sources.turns import chat, identity, text, with_system

NAME = "columns"
MEANINGS = {
    "prompt": "the text to ask; where messages is named too, for rows without any",
    "messages": "a conversation: a list of turns, or its JSON text",
    "system": "the text of the system turn",
    "answer": "the text that answers; the rows then are answers, not prompts",
    "tools": "functions: a list, or its JSON text",
    "id": "the row's own id",
}


def column_problems(columns: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return what is wrong with a mapping, each as its key ("" for the whole) and a complaint."""
    problems = []
    for key, column in columns.items():
        if key not in MEANINGS:
            problems.append((key, f"is not known; {did_you_mean(key, MEANINGS)}"))
        elif not isinstance(column, str) or not column:
            problems.append((key, f"{as_shown(column)} is no name of a column"))
    if not {"prompt", "messages"} & columns.keys():
        problems.append(("", "name the column of prompt or of messages"))
    return problems


def by_columns(columns: Mapping[str, str]) -> Recipe:
    """Return the recipe that reads the named columns; raise InputError with all that is wrong."""
    problems = column_problems(columns)
    if problems:
        said = "; ".join(f"columns.{key} {text}" if key else text for key, text in problems)
        raise InputError(said, hint='write columns = { prompt = "question" }, for example')
    asks = [columns[key] for key in ("messages", "prompt") if key in columns]
    return Recipe(
        name=NAME,
        about="columns named by the settings",
        columns=frozenset(asks if len(asks) == 1 else ()),
        read=partial(_read, dict(columns)),
        gives=Gives.ANSWERS if "answer" in columns else Gives.PROMPTS,
    )


def _read(columns: Mapping[str, str], row: Row) -> Conversation:
    turns = chat(row, columns["messages"]) if "messages" in columns else []
    if not turns and "prompt" in columns:
        turns = [{"role": "user", "content": text(row, columns["prompt"])}]
    if "system" in columns:
        turns = with_system(row, columns["system"], turns)
    if "answer" in columns:
        answer: Message = {"role": "assistant", "content": text(row, columns["answer"])}
        turns = [*turns, answer]
    tools = tools_of(row.get(columns["tools"]), columns["tools"]) if "tools" in columns else None
    return Conversation(turns, tools, identity(row, columns["id"]) if "id" in columns else None)
