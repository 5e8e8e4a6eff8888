"""What recipes share: columns of a row as texts, ids and turns of a conversation.

Owns the shapes in which datasets write a turn (`role`/`content`, ShareGPT's `from`/`value`, calls
as `tool_calls` or `function_call`, reasoning as `thinking` or `reasoning_content`) and how one
becomes a message. What roles and calls mean, and which turns stay, is decided in `turn_rules`.
"""

from operator import itemgetter

from app.files.prompt_records import kind_of
from app.sources.contract import Conversation, Message, Row, SkippedError, SkipReason
from app.sources.function_calls import json_of

MAX_ID_CHARACTERS = 500  # a prompt's id has at most 512, and a twin's gets "~2" behind it
_INTEGER_BITS = 64
_PLAIN_KEYS = 2
_USUAL, _SHAREGPT = itemgetter("role", "content"), itemgetter("from", "value")
_REASONING = ("thinking", "reasoning_content", "reasoning")


def single(row: Row, column: str, id_column: str | None = None) -> Conversation:
    """Return the conversation of a row that only asks: one user turn, the text of a column."""
    turn: Message = {"role": "user", "content": text(row, column)}
    return Conversation([turn], None, identity(row, id_column) if id_column else None)


def text(row: Row, column: str) -> str:
    """Return the text of a column, "" where it is missing or null."""
    given = row.get(column)
    if type(given) is str:
        return given
    if given is None:
        return ""
    raise SkippedError(SkipReason.BAD_SCHEMA, f"{column} is {kind_of(given)}, not a text")


def identity(row: Row, column: str) -> str | None:
    """Return the row's own id, None where there is none that a prompt could have."""
    given = row.get(column)
    if type(given) is str and given.isascii() and 0 < len(given) <= MAX_ID_CHARACTERS:
        return None if given.isspace() else given
    if type(given) is int:
        given = str(given) if given.bit_length() <= _INTEGER_BITS else None
    if not isinstance(given, str) or len(given) > MAX_ID_CHARACTERS or not given.strip():
        return None
    return given if _is_unicode(given) else None


def chat(row: Row, column: str) -> list[Message]:
    """Return the messages of a column: a list of turns, or its JSON text; [] without one."""
    turns = listed(row, column)
    # A short cut for what nearly every turn of nearly every source is: two keys, no more.
    objects = [turn for turn in turns if type(turn) is dict]
    role_and_text = _SHAREGPT if objects and "from" in objects[0] else _USUAL
    if len(objects) == len(turns) and sum(map(len, objects)) == _PLAIN_KEYS * len(turns):
        try:
            pairs = list(map(role_and_text, objects))
            return [{"role": role, "content": text} for role, text in pairs]
        except KeyError:
            pass  # they are other two
    return [message(turn, f"{column}[{number}]") for number, turn in enumerate(turns)]


def with_system(row: Row, column: str, turns: list[Message]) -> list[Message]:
    """Return the turns behind the system text of a column, where it says one that they do not."""
    system = text(row, column)
    if not system or system.isspace():
        return turns
    first: Message = {"role": "system", "content": system}
    return turns if turns and turns[0] == first else [first, *turns]


def listed(row: Row, column: str) -> list[object]:
    """Return the list of a column, or of the JSON text in it; [] where it is missing."""
    given = row.get(column)
    if isinstance(given, str):
        given = json_of(given, column) if given.strip() else None
    if given is None:
        return []
    if not isinstance(given, list):
        raise SkippedError(SkipReason.BAD_SCHEMA, f"{column} is {kind_of(given)}, not a list")
    return given


def message(turn: object, place: str) -> Message:
    """Return one turn in the usual shape, role and calls still in the source's words."""
    if not isinstance(turn, dict):
        raise SkippedError(SkipReason.BAD_SCHEMA, f"{place} is {kind_of(turn)}, not an object")
    role = turn.get("role") if turn.get("role") is not None else turn.get("from")
    content = turn["content"] if "content" in turn else turn.get("value")
    said: Message = {"role": role, "content": content}
    for name in _REASONING:
        thought = turn.get(name)
        if isinstance(thought, str) and thought.strip():
            said["reasoning_content"] = thought
            break
    ids = turn.get("tool_call_ids")  # SWE-smith writes a list of one
    call_id = turn.get("tool_call_id") or (ids[0] if isinstance(ids, list) and ids else None)
    if call_id:
        said["tool_call_id"] = call_id
    calls = turn.get("tool_calls") or ([turn["function_call"]] if turn.get("function_call") else [])
    if calls:
        said["tool_calls"] = calls
    return said


def _is_unicode(given: str) -> bool:
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True
