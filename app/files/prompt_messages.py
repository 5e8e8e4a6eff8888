"""The conversation of a prompt record: ShareGPT and role/content shapes to one list of messages.

Owns the names of roles and parts, for `app.sources` too. Invariants: a conversation ends with a
user or tool turn, since that is what gets an answer, so answers at the end are dropped; every user
turn says something; text is neither trimmed nor normalised.
"""

from collections.abc import Iterable

ROLES = {
    "user": "user", "human": "user",
    "assistant": "assistant", "gpt": "assistant", "ai": "assistant", "chatgpt": "assistant",
    "bard": "assistant", "bing": "assistant",
    "system": "system",
    "tool": "tool", "function": "tool",
}  # fmt: skip
_PASSED_ON = ("name", "tool_calls", "tool_call_id", "reasoning_content")
_PLAIN_KEYS = 2


class RecordError(ValueError):
    """Why a record is no prompt; never holds its content."""


def chat_of(record: dict[str, object]) -> list[dict[str, object]] | None:
    """Return the messages to answer, None if the record has no conversation."""
    name = "messages" if record.get("messages") is not None else "conversations"
    turns = record.get(name)
    if turns is None:
        return None
    if not isinstance(turns, list):
        raise RecordError(f"{name} is not a list")
    messages = [_message(turn, f"{name}[{number}]") for number, turn in enumerate(turns)]
    while messages and messages[-1]["role"] == "assistant":
        messages.pop()
    if not messages:
        raise RecordError(f"{name} has no user turn to answer")
    if messages[-1]["role"] == "system":
        raise RecordError(f"{name} ends with a system turn; there is nothing to answer")
    if record.get("system"):
        return _with_system(record["system"], messages)
    return messages


def _with_system(system: object, messages: list[dict[str, object]]) -> list[dict[str, object]]:
    if not isinstance(system, str):
        raise RecordError("system is not a text")
    if system.isspace():
        return messages
    first: dict[str, object] = {"role": "system", "content": system}
    if messages[0]["role"] != "system":
        return [first, *messages]
    if messages[0]["content"] == system:
        return messages
    raise RecordError("system and the first turn are two different system texts; keep one")


def plain_chat(record: dict[str, object]) -> list[dict[str, object]] | None:
    """Return the messages of the commonest record as they are: one user turn, nothing special.

    Only a short cut for speed: `chat_of` says the same, and a test holds the two together.
    """
    turns = record.get("messages")
    if type(turns) is not list or len(turns) != 1:
        return None
    turn = turns[0]
    if type(turn) is not dict or len(turn) != _PLAIN_KEYS or turn.get("role") != "user":
        return None
    content = turn.get("content")
    return turns if type(content) is str and content and not content.isspace() else None


def _message(turn: object, place: str) -> dict[str, object]:
    if not isinstance(turn, dict):
        raise RecordError(f"{place} is not an object")
    role = role_of(turn.get("role") if turn.get("role") is not None else turn.get("from"), place)
    content = turn["content"] if "content" in turn else turn.get("value")
    message: dict[str, object] = {"role": role}
    if content is None and role == "assistant" and turn.get("tool_calls"):
        message["content"] = None
    else:
        message["content"] = text_of(content, place)
    if role == "user" and not str(message["content"]).strip():
        raise RecordError(f"{place} is empty")
    message |= {key: turn[key] for key in _PASSED_ON if turn.get(key) is not None}
    return message


def role_of(given: object, place: str) -> str:
    """Return which of our four roles a source's name for one means."""
    role = ROLES.get(given) if isinstance(given, str) else None
    if role is None:
        known = ", ".join(dict.fromkeys(ROLES.values()))
        said = f'the role "{given[:40]}"' if isinstance(given, str) else "no role"
        raise RecordError(f"{place} has {said}; known: {known}")
    return role


def text_of(content: object, place: str) -> str:
    """Return a turn's content as one text: as it is, or its text parts one after another."""
    if isinstance(content, str):
        return content
    if content is None:
        raise RecordError(f"{place} has no content (null)")
    if not isinstance(content, list):
        kind = "a number" if isinstance(content, int | float) else "an object"
        raise RecordError(f"{place} has {kind} as content, not a text")
    return "".join(_part_texts(content, place))


def _part_texts(parts: Iterable[object], place: str) -> Iterable[str]:
    """Yield the texts of a list of parts in order; any other part makes the record unusable."""
    for part in parts:
        if isinstance(part, str):
            yield part
            continue
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text") if isinstance(part, dict) else None
        if kind != "text" or not isinstance(text, str):
            said = f'of type "{kind[:40]}"' if isinstance(kind, str) else "without a type"
            raise RecordError(f"{place} has a part {said}; only text can be sent")
        yield text
