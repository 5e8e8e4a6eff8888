"""The rules by which the turns of any source become one conversation.

Owns their order and what each means:

1. Roles become ours; a role that nobody knows makes the row unusable.
2. `<think>` in front of an answer is taken off: history never shows it. In rows that are answered
   already it becomes the turn's `reasoning_content`.
3. Blank turns go. A turn with calls, or the result of one, says something even without a text.
4. What comes before the first user turn goes, but for a first system turn.
5. Neighbours of one role become one turn, but for those with calls and results.

What stands behind the last user turn of a prompt is not looked at, but for its roles.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import eq, itemgetter

from app.files.prompt_messages import ROLES, role_of, text_of
from app.sources.contract import Message, SkippedError, SkipReason
from app.sources.function_calls import Calls
from app.sources.thinking import split_thinking

_PLAIN_KEYS = 2  # role and content
_CONTENT = itemgetter("content")
_ROLE = itemgetter("role")
_MOST_PLAIN_TURNS = 64


def asked_conversation(turns: list[Message], *, is_first_only: bool) -> list[Message]:
    """Return the conversation up to its last user turn, or to what the first one is answered with.

    Raises SkippedError if no user says anything.
    """
    plain = _plain(turns)
    if plain is not None:
        return plain
    roles = _roles(turns)
    n = _n_first_asked(turns, roles) if is_first_only else n_asked(roles)
    return _joined(_begun(_said(turns[:n], roles, is_answered=False), roles))


def answered_conversation(turns: list[Message]) -> list[Message]:
    """Return the whole conversation with its answers; SkippedError if no user says anything."""
    roles = _roles(turns)
    return _joined(_begun(_said(turns, roles, is_answered=True), roles))


def n_asked(roles: Sequence[object]) -> int:
    """Return how many turns there are up to and with the last user's, of our roles of all."""
    n = len(roles)
    while n and roles[n - 1] != "user":
        n -= 1
    return n


def _n_first_asked(turns: list[Message], roles: list[str]) -> int:
    """Return how many turns there are before the first user turn is answered."""
    is_asked = False
    for number, (turn, role) in enumerate(zip(turns, roles, strict=True)):
        content = turn.get("content")
        is_blank = content is None or (isinstance(content, str) and not content.strip())
        if role == "user":
            is_asked = is_asked or not is_blank
        elif is_asked and (not is_blank or turn.get("tool_calls")):
            return number
    return len(turns)


def _plain(turns: list[Message]) -> list[Message] | None:
    """Return the conversation of turns that need no rule but the names of roles, else None.

    Only a short cut for speed, so it looks at all turns together and not at one after another: the
    rules say the same, and a test holds the two together.
    """
    try:
        given = tuple(map(_ROLE, turns[:_MOST_PLAIN_TURNS]))
        roles = _plain_roles(given)
        if roles is None or len(given) < len(turns):
            return None
        messages = turns[: len(roles)]
        contents = list(map(_CONTENT, messages))
    except (KeyError, TypeError):  # a turn without one of them, a role that is no text
        return None
    if sum(map(len, messages)) != _PLAIN_KEYS * len(messages) or not _are_plain(contents):
        return None
    if roles != given[: len(roles)]:
        for message, role in zip(messages, roles, strict=True):
            message["role"] = role
    return messages


@lru_cache(maxsize=1024)  # there are few such orders of roles, and millions of rows
def _plain_roles(given: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return our roles, without an answer at the end; None if an order needs the other rules."""
    roles = [ROLES.get(role, "") for role in given]
    if roles[-1:] == ["assistant"]:  # it is cut off, whatever it says
        roles.pop()
    is_begun = roles[:1] == ["user"] or roles[:2] == ["system", "user"]
    if not is_begun or "" in roles or any(map(eq, roles, roles[1:])):
        return None
    return tuple(roles)


def _are_plain(contents: list[str]) -> bool:
    """Whether each is indeed a text, and says something that does not begin with reasoning."""
    if set(map(type, contents)) != {str} or "" in contents:
        return False
    beginnings = "".join([content[0] for content in contents])
    return "<" not in beginnings and beginnings.split() == [beginnings]


def _roles(turns: list[Message]) -> list[str]:
    """Return our roles of all turns."""
    roles = []
    for number, turn in enumerate(turns, 1):
        given = turn.get("role")
        role = ROLES.get(given) if type(given) is str else None
        roles.append(role or role_of(given, f"turn {number}"))
    return roles


def _said(turns: list[Message], roles: list[str], *, is_answered: bool) -> Iterator[Message]:
    """Yield the turns that say something, in our roles. `turns` may be the first of them only."""
    calls = Calls()
    for number, (turn, role) in enumerate(zip(turns, roles, strict=False), 1):
        place = f"turn {number}"
        content = turn.get("content")
        text = "" if content is None else text_of(content, place)
        said: Message = {"role": role, "content": text}
        if role == "assistant":
            said = _answer(turn, text, is_answered=is_answered)
            if turn.get("tool_calls"):
                said["tool_calls"] = calls.made(turn["tool_calls"], place)
        elif role == "tool" and (call_id := calls.answered(turn.get("tool_call_id"))):
            said = {"role": role, "tool_call_id": call_id, "content": text}
        # A call, or the result of one, says something without a text.
        if str(said["content"]).strip() or "tool_calls" in said or "tool_call_id" in said:
            yield said


def _answer(turn: Message, text: str, *, is_answered: bool) -> Message:
    thought, text = split_thinking(text)
    said: Message = {"role": "assistant", "content": text}
    if is_answered:
        own = turn.get("reasoning_content")
        thoughts = dict.fromkeys([own if isinstance(own, str) else "", thought])
        reasoning = "\n\n".join(thought for thought in thoughts if thought.strip())
        if reasoning:
            said["reasoning_content"] = reasoning
    return said


def _begun(said: Iterator[Message], roles: list[str]) -> list[Message]:
    """Return all from the first user turn on, a first system turn before it."""
    begun: list[Message] = []
    previous = None
    for message in said:
        role = message["role"]
        if role == "user":
            return [*begun, message, *said]
        if role == "system" and (not begun or previous == "system"):
            begun.append(message)
        previous = role
    if "user" in roles:
        raise SkippedError(SkipReason.EMPTY_PROMPT, "every user turn is blank")
    raise SkippedError(SkipReason.NO_USER_TURN, f"{len(roles)} turns, none of them a user's")


def _joined(messages: list[Message]) -> list[Message]:
    roles = list(map(_ROLE, messages))
    if not any(map(eq, roles, roles[1:])):
        return messages
    return [_one_of(list(neighbours)) for _, neighbours in groupby(messages, key=_joins_with)]


def _joins_with(message: Message) -> object:
    """Return what neighbours have in common that become one turn."""
    role = message["role"]
    return object() if role == "tool" or "tool_calls" in message else role


def _one_of(neighbours: list[Message]) -> Message:
    first = neighbours[0]
    if len(neighbours) > 1:
        first["content"] = "\n\n".join(map(_CONTENT, neighbours))
        thoughts = [said["reasoning_content"] for said in neighbours if "reasoning_content" in said]
        if thoughts:
            first["reasoning_content"] = "\n\n".join(map(str, thoughts))
    return first
