"""JSON bodies as servers write them: odd numbers, and errors in any of their shapes.

Sources: recorded errors of SGLang 0.5.9 and 0.5.23, and of its router. Messages are shortened,
because a validation error may echo the whole prompt.
"""

import json

import orjson

from app.core.types import AttemptEnd, EndKind

_MAX_MESSAGE = 400


def parse_json(body: bytes) -> object:
    """Parse JSON; NaN and Infinity, which some servers write for log-probabilities, pass too.

    Raises ValueError for anything else.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def error_in(content: dict[str, object]) -> AttemptEnd | None:
    """Return the error that a body or event holds, in any of the server's five shapes."""
    error = content.get("error")
    code: object = content.get("code")
    if isinstance(error, dict):
        message, code = error.get("message", error), error.get("code", code)
    elif error is not None:
        message = error
    elif content.get("object") == "error":
        message = content.get("message", "")
    else:
        return None
    status = code if isinstance(code, int) else None
    kind = EndKind.BUSY if status in (429, 503) else EndKind.ERROR
    return AttemptEnd(kind=kind, status=status, message=cut(str(message).encode()))


def message_of(body: bytes) -> str:
    """Return what an error body says, shortened: it may echo the whole prompt."""
    try:
        content = parse_json(body)
    except ValueError:
        return cut(body)
    if isinstance(content, dict):
        found = error_in(content)
        if found is not None:
            return found.message
        detail = content.get("detail", content.get("message"))
        if detail is not None:
            return cut(str(detail).encode())
    return cut(content.encode() if isinstance(content, str) else body)


def cut(content: bytes) -> str:
    shown = content[:_MAX_MESSAGE].decode("utf-8", "replace")
    return shown + "…" if len(content) > _MAX_MESSAGE else shown
