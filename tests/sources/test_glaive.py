"""Glaive's flat text: where a turn begins, what a call says, which functions there are."""

import orjson
import pytest

from app.sources.contract import Mode, SkippedError, SkipReason
from app.sources.conversations import Extracted, extracted
from app.sources.known import by_name

GLAIVE = by_name("glaive_function_calling")
GAP = "\n\n\n"


def read(chat: str, system: str = "") -> Extracted:
    return extracted(GLAIVE, {"system": system, "chat": chat}, Mode.LAST_USER)


def called(written: str) -> list[tuple[str, object]]:
    """Return name and arguments of the calls in an answer."""
    found = read(f"USER: Hi{GAP}ASSISTANT: {written} <|endoftext|>{GAP}USER: And?")
    calls = found.messages[1].get("tool_calls", [])
    assert isinstance(calls, list)
    assert [call["id"] for call in calls] == [
        f"functions.{call['function']['name']}:{number}" for number, call in enumerate(calls)
    ]
    return [
        (call["function"]["name"], orjson.loads(call["function"]["arguments"])) for call in calls
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("""{"name": "f", "arguments": '{"at": "Husum's port"}'}""", {"at": "Husum's port"}),
        (r"""{"name": "f", "arguments": '{"at": "Husum\'s port"}'}""", {"at": "Husum's port"}),
        ("""{"name": "f", "arguments": '{"s": "'}', '"}'}""", {"s": "'}', '"}),
        ("""{"name": "f", "arguments": '{}'}""", {}),
        ("""{"name": "f", "arguments": ''}""", {}),
        ("""{"name": "f", "arguments": {"a": [1]}}""", {"a": [1]}),
        ("""{"name": "f", "arguments": "{\\"a\\": 1}"}""", {"a": 1}),
        ("""{"name": "f"}""", {}),
    ],
)
def test_a_call_is_read_though_it_is_no_json(written: str, expected: object) -> None:
    assert called(f"<functioncall> {written}") == [("f", expected)]


def test_an_answer_can_say_something_and_call_twice() -> None:
    one = """{"name": "f", "arguments": '{"a": 1}'}"""
    two = """{"name": "g", "arguments": '{"b": 2}'}"""

    assert called(f"Wait. <functioncall> {one} <|endoftext|>\n<functioncall> {two}") == [
        ("f", {"a": 1}), ("g", {"b": 2})
    ]  # fmt: skip


@pytest.mark.parametrize(
    "written",
    ["", "{", '{"name": "f", "arguments": \'{"a": 1\'}', "{\"arguments\": '{}'}", "[]", "f('x')"],
)
def test_a_call_that_is_not_read_makes_the_row_unusable(written: str) -> None:
    with pytest.raises(SkippedError) as raised:
        called(f"<functioncall> {written}")

    assert raised.value.reason is SkipReason.BAD_SCHEMA
    assert "turn 2" in raised.value.detail


def test_a_broken_call_behind_the_last_question_does_no_harm() -> None:
    assert read(f"USER: Hi{GAP}ASSISTANT: <functioncall> {{").messages == [
        {"role": "user", "content": "Hi"}
    ]


def test_a_marker_counts_only_at_the_start_and_behind_two_blank_lines() -> None:
    said = "one\n\nUSER: two\nASSISTANT: three \n\n\n\n\n four USER:"

    found = read(f"\nUSER: {said}\n\n\n\nASSISTANT: yes{GAP}USER: five")

    assert [turn["content"] for turn in found.messages] == [said, "yes", "five"]


def test_a_text_without_a_marker_is_bad_schema() -> None:
    with pytest.raises(SkippedError) as raised:
        read(f"Hi{GAP}USER: Ho")

    assert raised.value.detail == "chat does not begin with USER: or ASSISTANT:"


def test_results_answer_the_oldest_call() -> None:
    calls = "".join(f'<functioncall> {{"name": "{name}"}}' for name in "fg")
    results = "".join(f"FUNCTION RESPONSE: {result}{GAP}" for result in "123")

    found = read(f"USER: Hi{GAP}ASSISTANT: {calls}{GAP}{results}USER: And?")

    assert [turn.get("tool_call_id") for turn in found.messages] == [
        None, None, "functions.f:0", "functions.g:1", None, None
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        ('{"name": "f"}{"name": "g"}', ["f", "g"]),
        ('{"name": "f"} \n {"name": "g"}\n', ["f", "g"]),
        ('{"name": "f", "description": "}{"}', ["f"]),
        ('{"name": "f"} and more', None),
        ('{"title": "no name"}', None),
        ('{"name": "f", "lowest": NaN}', None),
        ('{"name": "f", "example": "\\ud800"}', None),
    ],
)
def test_functions_are_all_read_or_stay_text(functions: str, expected: list[str] | None) -> None:
    found = read("USER: Hi", f"SYSTEM: Use them if required -\n{functions}")

    if expected is None:
        assert found.tools is None
        assert found.messages[0]["content"] == f"Use them if required -\n{functions}".strip()
    else:
        assert [name_of(tool) for tool in found.tools or []] == expected
        assert [said["role"] for said in found.messages] == ["user"]


def name_of(tool: object) -> object:
    assert isinstance(tool, dict)
    assert tool["type"] == "function"
    return tool["function"]["name"]
