"""Functions, calls and results of a source in the one shape that templates take.

Owns call ids: `functions.<name>:<n>`, n counting over the row, which is how Kimi writes them.
Invariant: the arguments of a call are the text of one JSON object, since a server parses them
again; a text that is none makes the row unusable, for no server would take it.
"""

from collections import OrderedDict

import orjson

from app.sources.contract import Message, SkippedError, SkipReason

_NO_ARGUMENTS = "{}"


class Calls:
    """The calls of one conversation, and which of them wait for a result."""

    def __init__(self) -> None:
        self._n_made = 0
        self._waiting: OrderedDict[str, None] = OrderedDict()

    def made(self, given: object, place: str) -> list[object]:
        """Return the next calls of a turn; of each, the name and the arguments are read.

        They stand in the call itself or in its `function`; the arguments are the text of a JSON
        object, or the object.
        """
        if not isinstance(given, list):
            raise SkippedError(SkipReason.BAD_SCHEMA, f"{place} has calls that are not a list")
        return [self._one(call, place) for call in given]

    def answered(self, own_id: object = None) -> str | None:
        """Return the id of the call that a result belongs to; without an own one, the oldest's."""
        if isinstance(own_id, str) and own_id:
            self._waiting.pop(own_id, None)
            return own_id
        return self._waiting.popitem(last=False)[0] if self._waiting else None

    def _one(self, call: object, place: str) -> Message:
        if not isinstance(call, dict):
            raise SkippedError(SkipReason.BAD_SCHEMA, f"{place} has a call that is not an object")
        inner = call.get("function")
        named = inner if isinstance(inner, dict) else call
        name = named.get("name")
        if not isinstance(name, str) or not name.strip():
            raise SkippedError(SkipReason.BAD_SCHEMA, f"{place} calls a function without a name")
        function = {"name": name, "arguments": _arguments(named.get("arguments"), place)}
        own_id = call.get("id")
        if not isinstance(own_id, str) or not own_id:
            own_id = f"functions.{name}:{self._n_made}"
        self._n_made += 1
        self._waiting[own_id] = None
        return {"id": own_id, "type": "function", "function": function}


def tools_of(given: object, column: str) -> list[object] | None:
    """Return the functions of a column: a list of them, or its JSON text; None if there are none.

    A function without its wrapper (`name`, `description`, `parameters` alone) gets it.
    """
    if isinstance(given, str):
        given = json_of(given, column) if given.strip() else None
    if given is None or given == []:
        return None
    if not isinstance(given, list):
        raise SkippedError(SkipReason.BAD_SCHEMA, f"{column} is not a list of functions")
    return [_tool(one, f"{column}[{number}]") for number, one in enumerate(given)]


def json_of(text: str, column: str) -> object:
    """Return what the JSON text of a column holds."""
    try:
        return orjson.loads(text)
    except ValueError as error:
        raise SkippedError(SkipReason.BAD_SCHEMA, f"{column} holds broken JSON") from error


def _tool(given: object, place: str) -> object:
    if isinstance(given, dict):
        if isinstance(given.get("function"), dict):
            return given
        if isinstance(given.get("name"), str):
            return {"type": "function", "function": given}
    raise SkippedError(SkipReason.BAD_SCHEMA, f"{place} is not a function with a name")


def _arguments(given: object, place: str) -> str:
    if given is None or given == "":
        return _NO_ARGUMENTS
    try:
        if isinstance(given, dict):
            return orjson.dumps(given).decode()
        if isinstance(given, str) and isinstance(orjson.loads(given), dict):
            return given
    except (ValueError, TypeError):  # what orjson raises for bad JSON and for what it cannot write
        pass
    raise SkippedError(
        SkipReason.BAD_SCHEMA, f"{place} calls a function with arguments that are no JSON object"
    )
