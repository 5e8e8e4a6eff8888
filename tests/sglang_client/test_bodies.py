"""Error bodies in every shape that servers and routers write, and JSON with odd numbers."""

from typing import Any

import pytest

from app.core.types import EndKind
from app.sglang.bodies import error_in, message_of, parse_json

SHAPES: list[tuple[dict[str, Any], EndKind, int | None, str]] = [
    ({"error": "unknown field `foo`"}, EndKind.ERROR, None, "unknown field `foo`"),
    ({"error": {"message": "too long"}}, EndKind.ERROR, None, "too long"),
    ({"error": {"message": "x", "code": 400}}, EndKind.ERROR, 400, "x"),
    ({"error": {"message": "x", "code": 503}}, EndKind.BUSY, 503, "x"),
    ({"error": {"message": "x", "code": "no_available_workers"}}, EndKind.ERROR, None, "x"),
    ({"object": "error", "message": "full", "code": 503}, EndKind.BUSY, 503, "full"),
    ({"object": "error", "message": "m", "code": 400}, EndKind.ERROR, 400, "m"),
    ({"object": "error"}, EndKind.ERROR, None, ""),
    ({"error": {"type": "odd"}}, EndKind.ERROR, None, "{'type': 'odd'}"),
    ({"error": ["a"]}, EndKind.ERROR, None, "['a']"),
    ({"error": ""}, EndKind.ERROR, None, ""),
    ({"error": "busy", "code": 429}, EndKind.BUSY, 429, "busy"),
]


@pytest.mark.parametrize(("content", "kind", "status", "message"), SHAPES)
def test_an_error_is_found_in_each_shape(
    content: dict[str, Any], kind: EndKind, status: int | None, message: str
) -> None:
    found = error_in(content)

    assert found is not None
    assert (found.kind, found.status, found.message) == (kind, status, message)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"error": None},
        {"error": None, "output_ids": [1]},
        {"code": 500},
        {"object": "text_completion"},
        {"text": "error"},
    ],
)
def test_what_is_no_error_is_none(content: dict[str, Any]) -> None:
    assert error_in(content) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "a"}}', "a"),
        (b'{"error": "a"}', "a"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"message": "m"}', "m"),
        (b'{"detail": [{"loc": ["body"], "msg": "bad"}]}', "bad"),
        (b"Internal Server Error", "Internal Server Error"),
        (b"", ""),
        (b'{"odd": 1}', '{"odd": 1}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_the_message_of_a_body_is_what_it_says(body: bytes, message: str) -> None:
    assert message in message_of(body)


def test_a_long_message_is_cut_and_says_so() -> None:
    for body in (b"x" * 5000, b'{"error": "' + b"x" * 5000 + b'"}'):
        message = message_of(body)

        assert len(message) < 500
        assert message.endswith("…")


def test_a_message_cut_in_the_middle_of_a_letter_stays_text() -> None:
    assert message_of(("ä" * 399 + "日" * 100).encode()).endswith("…")


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"123456789012345678901"])
def test_srv_18_odd_numbers_are_read(number: bytes) -> None:
    assert isinstance(parse_json(b'{"a": [' + number + b"]}"), dict)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 200_000, b"9" * 100_000, b"nan"])
def test_what_is_not_json_is_one_kind_of_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(body)
