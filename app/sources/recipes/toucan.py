"""Toucan (Kimi K2): answered conversations with calls of tools, the whole as JSON text.

The functions stand in a system turn, written in Kimi's own control tokens; they become `tools` and
the turn goes, or the tokens would nest. An answer's text and each of its calls are turns of their
own; they become one.
"""

from collections.abc import Iterator
from itertools import groupby

from app.files.prompt_messages import text_of
from app.sources.contract import Conversation, Gives, Message, Recipe, Row
from app.sources.function_calls import tools_of
from app.sources.turns import chat, identity

_DECLARES = "<|im_system|>tool_declare<|im_middle|>"
_DECLARED = "<|im_end|>"


def read(row: Row) -> Conversation:
    turns = chat(row, "messages")
    declared = _declaration(turns[0]) if turns else None
    if declared is not None:
        turns, tools = turns[1:], tools_of(declared, "the declaration of tools")
    else:
        tools = tools_of(row.get("available_tools"), "available_tools")
    return Conversation(list(_whole(turns)), tools, identity(row, "uuid"))


def _declaration(turn: Message) -> str | None:
    content = turn.get("content")
    if not isinstance(content, str) or not content.startswith(_DECLARES):
        return None
    return content.removeprefix(_DECLARES).removesuffix(_DECLARED)


def _whole(turns: list[Message]) -> Iterator[Message]:
    for role, group in groupby(turns, key=lambda turn: turn["role"]):
        if role == "assistant":
            yield from _answers(group)
        else:
            yield from group


def _answers(turns: Iterator[Message]) -> Iterator[Message]:
    """Yield neighbouring turns as one; a text behind calls begins another."""
    said: list[Message] = []
    for turn in turns:
        if said and "tool_calls" in said[-1] and _text(turn).strip():
            yield _answer(said)
            said = []
        said.append(turn)
    yield _answer(said)


def _answer(turns: list[Message]) -> Message:
    texts = [text for text in map(_text, turns) if text.strip()]
    answer: Message = {"role": "assistant", "content": "\n\n".join(texts)}
    thoughts = [str(turn["reasoning_content"]) for turn in turns if "reasoning_content" in turn]
    if thoughts:
        answer["reasoning_content"] = "\n\n".join(thoughts)
    calls: list[object] = []
    for turn in turns:
        made = turn.get("tool_calls", [])
        calls += made if isinstance(made, list) else [made]
    return answer | {"tool_calls": calls} if calls else answer


def _text(turn: Message) -> str:
    content = turn["content"]
    return "" if content is None else text_of(content, "an assistant turn")


RECIPE = Recipe(
    name="toucan",
    about="Toucan by Kimi K2: answered conversations with calls of tools",
    columns=frozenset({"uuid", "messages", "available_tools", "target_tools"}),
    read=read,
    gives=Gives.ANSWERS,
)
