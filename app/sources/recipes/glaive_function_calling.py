"""Glaive function calling v2: a conversation as one flat text, functions as text beside it.

`USER:`, `ASSISTANT:` and `FUNCTION RESPONSE:` begin a turn only at the start and behind two blank
lines; people write "USER:" in the middle of a line. Answers end in a literal `<|endoftext|>`. The
arguments of a call stand in single quotes and can hold an apostrophe, so a call is not JSON.
"""

import json
from collections.abc import Iterator

import orjson

from app.sources.contract import Conversation, Message, Recipe, Row, SkippedError, SkipReason
from app.sources.function_calls import tools_of
from app.sources.turns import text

_MARKERS = {"USER": "user", "ASSISTANT": "assistant", "FUNCTION RESPONSE": "tool"}  # and ":"
_BETWEEN_TURNS = "\n\n\n"
_BETWEEN_OBJECTS = "}\n\n{"
_SYSTEM = "SYSTEM:"
_ANSWER_ENDS = "<|endoftext|>"
_CALLS = "<functioncall>"
_ARGUMENTS = '"arguments":'
_JSON = json.JSONDecoder()


def read(row: Row) -> Conversation:
    system = text(row, "system").strip().removeprefix(_SYSTEM).strip()
    tools = _functions(system)
    turns = list(_turns(text(row, "chat")))
    # No mode asks for what comes behind the last user turn, so a broken call there does no harm.
    while turns and turns[-1][0] != "user":
        turns.pop()
    messages = [_message(role, said, number) for number, (role, said) in enumerate(turns, 1)]
    if not tools and system:
        messages.insert(0, {"role": "system", "content": system})
    return Conversation(messages, tools)


def _functions(system: str) -> list[object] | None:
    """Return the functions of the system text, None if there are none or one cannot be read.

    They are JSON objects one behind the other, no list.
    """
    at = system.find("{")
    if at < 0:
        return None
    try:
        return tools_of(_objects(system[at:]), "system")
    except (ValueError, RecursionError, SkippedError):
        return None


def _objects(text: str) -> list[object]:
    """Return the JSON objects of a text; raise for anything else in it."""
    try:
        # How nearly all are written. Inside of a JSON text there is no blank line.
        listed: list[object] = orjson.loads(f"[{text.replace(_BETWEEN_OBJECTS, '},{')}]")
    except ValueError:
        listed, at = [], 0
        while at < len(text):
            # The parser that tells where an object ends takes more than JSON; ours does not.
            _, end = _JSON.raw_decode(text, at)
            listed.append(orjson.loads(text[at:end]))
            at = end
            while text[at : at + 1].isspace():
                at += 1
    return listed


def _turns(chat: str) -> Iterator[tuple[str, str]]:
    """Yield role and text of each turn, the text without the blanks around it."""
    role, texts = "", list[str]()
    for piece in chat.lstrip().split(_BETWEEN_TURNS):
        marker, colon, said = piece.lstrip("\n").partition(":")
        if not colon or marker not in _MARKERS:
            texts.append(piece)
            continue
        if role:
            yield role, _BETWEEN_TURNS.join(texts).strip()
        elif any(map(str.strip, texts)):
            break
        role, texts = _MARKERS[marker], [said]
    if role:
        yield role, _BETWEEN_TURNS.join(texts).strip()
    elif any(map(str.strip, texts)):
        raise SkippedError(SkipReason.BAD_SCHEMA, "chat does not begin with USER: or ASSISTANT:")


def _message(role: str, said: str, number: int) -> Message:
    if role != "assistant":
        return {"role": role, "content": said}
    spoken, *called = said.split(_CALLS)
    message: Message = {"role": role, "content": _ended(spoken)}
    if called:
        message["tool_calls"] = [_call(_ended(one), f"turn {number}") for one in called]
    return message


def _ended(said: str) -> str:
    return said.strip().removesuffix(_ANSWER_ENDS).rstrip()


def _call(written: str, place: str) -> dict[str, object]:
    """Return the call of `{"name": "x", "arguments": '{"a": 1}'}`; plain JSON is taken too."""
    head, _, rest = written.partition(_ARGUMENTS)
    rest = rest.strip()
    end = rest.rfind("'")
    try:
        if not (rest.startswith("'") and end > 0 and rest[end + 1 :].strip() == "}"):
            return _parsed(written)
        call = _parsed(head.rstrip().removesuffix(",") + "}")
    except ValueError as error:
        raise SkippedError(SkipReason.BAD_SCHEMA, f"{place} has a call that is not read") from error
    arguments = rest[1:end]
    if "\\'" in arguments and not _is_json(arguments):
        arguments = arguments.replace("\\'", "'")
    return call | {"arguments": arguments}


def _parsed(written: str) -> dict[str, object]:
    found = orjson.loads(written)
    if not isinstance(found, dict):
        raise ValueError("no object")  # noqa: TRY004 - one error for all that is not read
    return found


def _is_json(written: str) -> bool:
    try:
        orjson.loads(written)
    except ValueError:
        return False
    return True


RECIPE = Recipe(
    name="glaive_function_calling",
    about="Glaive function calling v2: conversations as flat text, with functions",
    columns=frozenset({"system", "chat"}),
    read=read,
)
