"""One line of a prompt file to one prompt, or to the reason why it is none.

Owns the shapes that a record may have and what makes it unusable. Opens no file and tokenizes
nothing. Invariants: content is passed on unchanged; a rejected record keeps none of it; two
records that ask the same, in whatever shape, have the same `prompt_sha256`.

Which part is read, the first that is there: `input_ids`, `messages`, `conversations`, `text`.
Half of a surrogate pair is rejected (inp-05): no UTF-8 can say it, so no answer could be written.
"""

import json
from array import array
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

import orjson

from app.core.spec_sampling import sampling_problems
from app.files.prompt_messages import RecordError, chat_of, plain_chat
from app.files.prompt_turns import Later, first_turn

MAX_KEY_CHARACTERS = 512
MAX_NEW_TOKENS = 10_000_000
_PLAIN_KEYS = 2  # id and messages
_NONE: Mapping[str, object] = {}
_SORTED = orjson.OPT_SORT_KEYS


# Named tuples, not frozen dataclasses: one is made for each of 100,000 and more records, and a
# frozen dataclass of this size costs more than parsing the JSON does.
class Prompt(NamedTuple):
    """A usable record. Exactly one of `input_ids`, `text` and `messages` is there.

    `later`: what each further turn adds behind the answer to the one before, where all are asked.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs of a record
    line: int
    key: str
    input_ids: "array[int] | None"
    text: str | None
    messages: list[dict[str, object]] | None
    tools: list[object] | None
    sampling: Mapping[str, object]
    chat_template_kwargs: Mapping[str, object]
    prompt_sha256: str
    later: Later = ()


class Rejected(NamedTuple):
    """An unusable record. `key` is its own id, None where that could not be read."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs of a record
    line: int
    key: str | None
    reason: str


def parse_line(line: bytes, index: int, line_number: int) -> Prompt | Rejected:
    """Return what one non-blank line of JSON holds."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        key, reason = unreadable(line, error)
        return Rejected(index, line_number, key, reason)
    if type(record) is dict and len(record) == _PLAIN_KEYS:
        key = record.get("id")
        chat = plain_chat(record)
        if chat is not None and type(key) is str and 0 < len(key) <= MAX_KEY_CHARACTERS:
            digest = sha256(orjson.dumps(chat, option=_SORTED)).hexdigest()
            return Prompt(index, line_number, key, None, None, chat, None, _NONE, _NONE, digest)
    return parse_record(record, index, line_number)


def parse_record(record: object, index: int, line_number: int) -> Prompt | Rejected:
    """Return what one record holds, from JSON or from a row of Parquet."""
    if not isinstance(record, dict):
        return Rejected(index, line_number, None, f"{kind_of(record)}, not an object")
    key: str | None = None
    later: Later = ()
    try:
        key = _key(record.get("id"))
        if record.get("turns") is not None:
            record, later = first_turn(record)
        own = _own_settings(record)
        content, digest = _content(record, own)
    except RecordError as problem:
        return Rejected(index, line_number, key, str(problem))
    input_ids, text, messages = content
    return Prompt(
        index,
        line_number,
        str(index) if key is None else key,
        input_ids,
        text,
        messages,
        own[0],
        own[1],
        own[2],
        digest,
        later,
    )


def asking(prompt: Prompt, messages: list[dict[str, object]]) -> Prompt:
    """Return the prompt of a later turn: the record's with other messages, and their digest."""
    has_own = prompt.tools or prompt.sampling or prompt.chat_template_kwargs
    own = (prompt.tools, prompt.sampling, prompt.chat_template_kwargs) if has_own else _NOTHING_OWN
    return prompt._replace(messages=messages, prompt_sha256=_digest(messages, own), later=())


_Own = tuple[list[object] | None, Mapping[str, object], Mapping[str, object]]
_Content = tuple["array[int] | None", str | None, list[dict[str, object]] | None]
_NOTHING_OWN: _Own = (None, _NONE, _NONE)


def _content(record: dict[str, object], own: _Own) -> tuple[_Content, str]:
    """Return the prompt in its one shape, and the digest of everything that decides its ids."""
    input_ids, messages, text = None, None, None
    asked: object
    if record.get("input_ids") is not None:
        input_ids = _ids(record["input_ids"])
        asked = sha256(input_ids.tobytes()).hexdigest()
    elif (chat := chat_of(record)) is not None:
        messages = asked = chat
    elif record.get("text") is not None:
        text = asked = _raw_text(record["text"])
    else:
        raise RecordError("has none of input_ids, messages, conversations and text")
    return (input_ids, text, messages), _digest(asked, own)


def _digest(asked: object, own: _Own) -> str:
    try:
        canonical = orjson.dumps(asked if own is _NOTHING_OWN else [asked, *own], option=_SORTED)
    except TypeError as error:
        raise RecordError(f"cannot be written as JSON: {error}") from error
    return sha256(canonical).hexdigest()


def _key(given: object) -> str | None:
    if given is None or given == "":
        return None
    if type(given) is int:
        return str(given)
    if not isinstance(given, str):
        raise RecordError(f"id is {kind_of(given)}; take a text or a whole number")
    if len(given) > MAX_KEY_CHARACTERS:
        raise RecordError(f"id has {len(given)} characters, at most {MAX_KEY_CHARACTERS} fit")
    return given


def _own_settings(record: dict[str, object]) -> _Own:
    """Return tools, sampling and template arguments that hold for this record alone."""
    tools = record.get("tools") or None
    sampling = record.get("sampling_params") or record.get("sampling") or _NONE
    kwargs = record.get("chat_template_kwargs") or _NONE
    if tools is None and sampling is _NONE and kwargs is _NONE:
        return _NOTHING_OWN
    if tools is not None and not isinstance(tools, list):
        raise RecordError(f"tools is {kind_of(tools)}, not a list")
    if not isinstance(kwargs, Mapping):
        raise RecordError(f"chat_template_kwargs is {kind_of(kwargs)}, not an object")
    return tools, _sampling(sampling), kwargs


def _sampling(given: object) -> Mapping[str, object]:
    if not isinstance(given, Mapping):
        raise RecordError(f"sampling is {kind_of(given)}, not an object")
    own = {name: value for name, value in given.items() if value is not None}
    limit = own.get("max_new_tokens", 1)
    if type(limit) is not int or not 1 <= limit <= MAX_NEW_TOKENS:
        raise RecordError("sampling.max_new_tokens is not a whole number from 1 on")
    others = {name: value for name, value in own.items() if name != "max_new_tokens"}
    if problems := sampling_problems(others, also_known=["max_new_tokens"]):
        raise RecordError("; ".join(f"sampling.{name}: {said}" for name, said in problems))
    return own


def _ids(given: object) -> "array[int]":
    if not isinstance(given, list):
        raise RecordError(f"input_ids is {kind_of(given)}, not a list of token ids")
    if not given:
        raise RecordError("input_ids is empty")
    if set(map(type, given)) != {int}:
        raise RecordError("input_ids holds something else than whole numbers")
    try:
        return array("I", given)
    except OverflowError as error:
        raise RecordError("input_ids holds a number below 0 or of 2^32 and more") from error


def _raw_text(given: object) -> str:
    if not isinstance(given, str):
        raise RecordError(f"text is {kind_of(given)}, not a text")
    if not given or given.isspace():
        raise RecordError("text is empty")
    return given


def unreadable(line: bytes, error: orjson.JSONDecodeError) -> tuple[str | None, str]:
    """Return the id, where it can be read, and a short reason without any of the content.

    The parser of the standard library takes what ours refuses: NaN and halves of surrogate pairs.
    """
    broken = f"broken JSON at character {error.pos + 1}: {error.msg}"
    try:
        text = line.decode()
    except UnicodeDecodeError as bad:
        return None, f"not valid Unicode: byte {bad.start + 1} of the line is not UTF-8"
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None, broken
    key = record.get("id") if isinstance(record, dict) else None
    own = str(key) if type(key) is int else key if isinstance(key, str) and key else None
    return own if _is_unicode(own) else None, unwritable(record) or broken


def unwritable(value: object) -> str | None:
    """Return why what the standard library has read could not be written as JSON, or None."""
    if not _is_unicode(json.dumps(value, ensure_ascii=False)):
        return "not valid Unicode: half of a surrogate pair (a lone \\ud800 to \\udfff)"
    return "NaN and Infinity are not JSON" if _holds_nan(value) else None


def _is_unicode(text: str | None) -> bool:
    try:
        return text is None or bool(text.encode()) or True
    except UnicodeEncodeError:
        return False


def _holds_nan(record: object) -> bool:
    try:
        json.dumps(record, allow_nan=False)
    except ValueError:
        return True
    return False


def kind_of(value: object) -> str:
    """Return the JSON kind of a value, for messages."""
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    if value is None:
        return "null"
    if isinstance(value, list):
        return "a list"
    return kinds.get(type(value), "an object")
