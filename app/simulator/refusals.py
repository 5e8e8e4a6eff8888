"""The shapes in which SGLang 0.5.23 says no.

Owns the error bodies and where they go: before a stream starts as an HTTP status, or inside it.
Shapes are those of a real server's transcripts; nothing here looks at a request.
"""

from typing import Any

FILE_HINT = (
    '\n\n  File "/opt/sglang/lib/python3.11/site-packages/sglang/srt/entrypoints/http_server.py"'
    ", line 928, in generate_request\n    POST /generate "
)


class BodyRefusedError(Exception):
    """Answered with an HTTP status, streamed or not."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body


class RequestRefusedError(Exception):
    """A 400 for a plain request; an error event inside a 200 for a streamed one."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class PoisonedError(Exception):
    """The request would kill a real server."""


def object_error(status: int, message: str, kind: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": status}


def plain_error(message: str) -> dict[str, Any]:
    return {"error": {"message": message}}


def stream_error(message: str) -> dict[str, Any]:
    return {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "code": 400,
            "retryable": False,
        }
    }


def invalid_body(*errors: dict[str, Any]) -> BodyRefusedError:
    """Return the 400 of the body's parser; like the real one it echoes the input."""
    number = f"{len(errors)} validation error{'s' if len(errors) > 1 else ''}:"
    lines = "".join(f"\n  {error}" for error in errors)
    return BodyRefusedError(
        400, object_error(400, f"{number}{lines}{FILE_HINT}{list(errors)}", "Bad Request")
    )


def wrong_type(kind: str, place: tuple[str, ...], message: str, given: object) -> dict[str, Any]:
    return {"type": kind, "loc": ("body", *place), "msg": message, "input": given}
