"""From a row to what is asked of it, or why nothing is: the rules that hold for every source.

Owns their order: a recipe reads the row, `turn_rules` make its turns a conversation, that is cut by
its mode, and special tokens are looked for in what is left, so in nothing that would not be sent.
Content is otherwise passed on unchanged. Invariants: the messages of a prompt end with a user turn
and can be written as JSON; the same row gives the same messages. Twins, lengths and sampling need
other rows: they are the pipeline's.
"""

from operator import itemgetter
from typing import NamedTuple

import orjson

from app.files.prompt_messages import RecordError, plain_chat
from app.sources.contract import Gives, Message, Mode, Recipe, Row, SkippedError, SkipReason
from app.sources.control_tokens import control_token, has_bracket_special
from app.sources.turn_rules import answered_conversation, asked_conversation, n_asked

BRACKET_SPECIAL = "bracket_special"
CONTROL_TOKEN = "control_token"  # noqa: S105 - the name of a flag, no secret
_PLAIN_KEYS = 2  # role and content
_CONTENT = itemgetter("content")
_ROLE = itemgetter("role")


class Extracted(NamedTuple):
    """What a row asks. `prompt_upto` is for rows with answers: messages up to the last user turn.

    `flags` holds what was seen in the text and kept: `control_token`, `bracket_special`.
    """

    messages: list[Message]
    tools: list[object] | None
    native_id: str | None
    flags: tuple[str, ...]
    prompt_upto: int | None


def extracted(
    recipe: Recipe, row: Row, mode: Mode, *, keep_control_tokens: bool = False
) -> Extracted:
    """Return what a row asks; raise SkippedError with the reason if it asks nothing usable.

    A row that is answered already is kept whole, whatever the mode. With `Mode.ALL_TURNS` the
    messages are the system turn and all user turns, to be answered one after another.
    """
    try:
        turns, tools, native_id = recipe.read(row)
        prompt_upto = None
        if recipe.gives is Gives.ANSWERS:
            turns, prompt_upto = _answered(turns)
        elif plain_chat({"messages": turns}) is None:  # the commonest row of all needs no rule
            turns = _asked(turns, mode)
    except RecordError as problem:
        detail = str(problem).encode(errors="replace").decode()
        raise SkippedError(SkipReason.BAD_SCHEMA, detail) from problem
    text = _text_sent(turns, tools)
    flags: tuple[str, ...] = ()
    token = control_token(text)
    if token is not None:
        if not keep_control_tokens:
            raise SkippedError(SkipReason.CONTROL_TOKEN, f"{_place(turns, token)} holds {token}")
        flags = (CONTROL_TOKEN,)
    if has_bracket_special(text):
        flags = (*flags, BRACKET_SPECIAL)
    return Extracted(turns, tools, native_id, flags, prompt_upto)


def _answered(turns: list[Message]) -> tuple[list[Message], int]:
    """Return the whole conversation, and how many messages there are up to the last user turn."""
    messages = answered_conversation(turns)
    roles = list(map(_ROLE, messages))
    prompt_upto = n_asked(roles)
    if "assistant" not in roles[prompt_upto:]:
        raise SkippedError(SkipReason.EMPTY_RESPONSE, "nothing answers the last user turn")
    return messages, prompt_upto


def _asked(turns: list[Message], mode: Mode) -> list[Message]:
    """Return what is asked of a conversation: cut by its mode, a user turn at its end."""
    messages = asked_conversation(turns, is_first_only=mode is Mode.FIRST_USER)
    if mode is Mode.LAST_USER and messages[-1]["role"] == "user":
        return messages
    roles = list(map(_ROLE, messages))
    if mode is Mode.FIRST_USER:
        return messages[: roles.index("user") + 1]
    if mode is Mode.LAST_USER:
        return messages[: n_asked(roles)]
    return messages[: roles[0] == "system"] + [said for said in messages if said["role"] == "user"]


def _text_sent(messages: list[Message], tools: list[object] | None) -> str:
    """Return all that will be sent as one text: the contents, or with calls or functions the JSON.

    Raises for what cannot be written: half of a surrogate pair, a value that JSON does not have,
    nesting without end.
    """
    if tools is None and sum(map(len, messages)) == _PLAIN_KEYS * len(messages):
        text = "\n".join(map(_CONTENT, messages))
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                detail = "the text is not valid Unicode: half of a surrogate pair"
                raise SkippedError(SkipReason.BAD_SCHEMA, detail) from error
        return text
    try:
        # Two lists deeper than a prompt file has it, since other files wrap it once more.
        return orjson.dumps([[{"messages": messages, "tools": tools}]]).decode()
    except TypeError as error:
        detail = f"calls or functions cannot be written as JSON: {error}"
        raise SkippedError(SkipReason.BAD_SCHEMA, detail) from error


def _place(messages: list[Message], token: str) -> str:
    for number, message in enumerate(messages, 1):
        if token in str(message["content"]):
            return f"message {number} ({message['role']})"
    return "a call, a function or reasoning"
