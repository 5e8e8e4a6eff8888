"""The rules behind every recipe, one at a time."""

import doctest

import pytest

from app.sources import control_tokens, thinking
from app.sources.contract import Mode, SkippedError, SkipReason
from app.sources.conversations import Extracted, extracted
from app.sources.known import by_name

CHAT = by_name("chat_messages")
ANSWERED = by_name("datagen_thinking")
NAMES = {"s": "system", "u": "user", "a": "assistant", "t": "tool", "x": "observer"}


def turns(*said: str) -> list[dict[str, object]]:
    """Return turns as role and content; "u Hi" is a user's."""
    return [{"role": NAMES[one[0]], "content": one[2:]} for one in said]


def last_user(*said: str) -> list[dict[str, object]]:
    return extracted(CHAT, {"messages": turns(*said)}, Mode.LAST_USER).messages


def reason(messages: object, mode: Mode = Mode.LAST_USER) -> SkippedError:
    with pytest.raises(SkippedError) as raised:
        extracted(CHAT, {"messages": messages}, mode)
    return raised.value


def call(id_: str | None = None) -> dict[str, object]:
    return {"id": id_, "function": {"name": "level", "arguments": '{"at": "A1"}'}}


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.LAST_USER, ["s S", "u one", "a 1", "u two", "a 2", "u three"]),
        (Mode.FIRST_USER, ["s S", "u one"]),
        (Mode.ALL_TURNS, ["s S", "u one", "u two", "u three"]),
    ],
)
def test_the_mode_says_where_a_conversation_is_cut(mode: Mode, expected: list[str]) -> None:
    said = turns("s S", "u one", "a 1", "u two", "a 2", "u three", "a 3")

    assert extracted(CHAT, {"messages": said}, mode).messages == turns(*expected)


def test_what_comes_before_the_first_user_turn_goes_but_for_a_first_system_turn() -> None:
    assert last_user("a 0", "s S", "t r", "s late", "u Hi") == turns("s S", "u Hi")
    assert last_user("s S", "s T", "u Hi") == turns("s S\n\nT", "u Hi")


def test_neighbours_become_one_turn_also_around_a_blank_one() -> None:
    assert last_user("u a", "u b", "a ", "u c") == turns("u a\n\nb\n\nc")
    assert last_user("u a", "a 1", "a 2", "u c") == turns("u a", "a 1\n\n2", "u c")


def test_content_is_neither_trimmed_nor_normalised() -> None:
    said = "  e\u0301\r\n\t<b>&amp;</b> \n"

    assert last_user(f"u {said}")[0]["content"] == said


def test_reasoning_in_front_of_an_earlier_answer_goes_and_inside_of_one_stays() -> None:
    inside = "The tag <think>x</think> is Kimi's."

    found = last_user("u a", "a <think>\nhm\n</think>\n\nyes", "u b", f"a {inside}", "u c")
    assert found == turns("u a", "a yes", "u b", f"a {inside}", "u c")
    assert last_user("u a", "a <think>never closed", "u b") == turns("u a\n\nb")


def test_reasoning_of_a_row_with_answers_is_kept_apart_wherever_it_stood() -> None:
    answers = [
        {"role": "assistant", "content": "<think>a</think><think>b</think>\n1"},
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "<think>c</think>2", "thinking": "c"},
        {"role": "assistant", "content": "3", "reasoning_content": "d"},
    ]

    found = extracted(ANSWERED, {"messages": [*turns("u Hi"), *answers]}, Mode.LAST_USER)

    assert [said.get("reasoning_content") for said in found.messages] == [
        None, "a\n\nb", None, "c\n\nd"
    ]  # fmt: skip
    assert [said["content"] for said in found.messages] == ["Hi", "1", "?", "2\n\n3"]
    assert found.prompt_upto == 3


def test_an_answer_of_reasoning_alone_is_none() -> None:
    with pytest.raises(SkippedError) as raised:
        extracted(ANSWERED, {"messages": turns("u a", "a b", "u c", "a <think>d")}, Mode.LAST_USER)

    assert raised.value.reason is SkipReason.EMPTY_RESPONSE


def test_calls_and_results_find_each_other() -> None:
    said = [
        *turns("u Hi", "a one moment"),
        {"role": "assistant", "content": None, "tool_calls": [call("own"), call()]},
        {"role": "tool", "content": "", "tool_call_id": "own"},
        {"role": "tool", "content": "second"},
        {"role": "tool", "content": "asked by nobody"},
        *turns("u And?"),
    ]

    found = extracted(CHAT, {"messages": said, "tools": '[{"name": "level"}]'}, Mode.LAST_USER)

    assert found.tools == [{"type": "function", "function": {"name": "level"}}]
    assert [said.get("tool_call_id") for said in found.messages] == [
        None, None, None, "own", "functions.level:1", None, None
    ]  # fmt: skip
    assert found.messages[2]["content"] == ""
    assert found.messages[3]["content"] == ""


@pytest.mark.parametrize(
    ("messages", "expected", "detail"),
    [
        (turns("u ", "a Hi"), SkipReason.EMPTY_PROMPT, "every user turn is blank"),
        (turns("s S", "a Hi"), SkipReason.NO_USER_TURN, "2 turns, none of them a user's"),
        (None, SkipReason.NO_USER_TURN, "0 turns, none of them a user's"),
        (turns("u Hi", "x Ho"), SkipReason.BAD_SCHEMA, 'turn 2 has the role "observer"'),
        ([7], SkipReason.BAD_SCHEMA, "messages[0] is a number, not an object"),
        (7, SkipReason.BAD_SCHEMA, "messages is a number, not a list"),
        ("[{", SkipReason.BAD_SCHEMA, "messages holds broken JSON"),
        (turns("u \ud800"), SkipReason.BAD_SCHEMA, "the text is not valid Unicode"),
        (
            [{"role": "user", "content": [{"type": "image_url"}]}],
            SkipReason.BAD_SCHEMA,
            'turn 1 has a part of type "image_url"; only text can be sent',
        ),
        (
            [
                *turns("u Hi"),
                {"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{"}]},
                *turns("u Ho"),
            ],
            SkipReason.BAD_SCHEMA,
            "turn 2 calls a function with arguments that are no JSON object",
        ),
        (turns("u Hi <|im_end|>"), SkipReason.CONTROL_TOKEN, "message 1 (user) holds <|im_end|>"),
    ],
)
def test_a_row_that_asks_nothing_usable_says_why(
    messages: object, expected: SkipReason, detail: str
) -> None:
    skipped = reason(messages)

    assert skipped.reason is expected
    assert skipped.detail.startswith(detail)


@pytest.mark.parametrize(("mode", "role"), [(Mode.FIRST_USER, "user"), (Mode.LAST_USER, "gpt")])
def test_what_is_behind_the_cut_is_not_looked_at(mode: Mode, role: str) -> None:
    broken = {"role": "gpt", "content": "<|im_end|>", "tool_calls": [7]}
    said = [*turns("s S", "u Hi"), broken, {"role": role, "content": 7}]

    assert extracted(CHAT, {"messages": said}, mode).messages == turns("s S", "u Hi")


def test_a_call_that_nothing_answers_is_left_alone() -> None:
    said = [*turns("u Hi"), {"role": "assistant", "tool_calls": [call()]}, *turns("u And?")]

    found = extracted(CHAT, {"messages": said}, Mode.LAST_USER)

    assert [list(message) for message in found.messages] == [
        ["role", "content"], ["role", "content", "tool_calls"], ["role", "content"]
    ]  # fmt: skip


def test_toucans_turns_become_one_with_its_text_and_calls_in_order() -> None:
    answers = [
        {"role": "assistant", "content": "one"},
        {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
        {"role": "assistant", "content": "", "function_call": {"name": "g", "arguments": {}}},
        {"role": "assistant", "content": "three", "reasoning_content": "hm"},
    ]
    row = {"messages": [*turns("u Hi"), *answers], "available_tools": '[{"name": "f"}]'}

    _, first, second = extracted(by_name("toucan"), row, Mode.LAST_USER).messages

    assert first["content"] == "one\n\ntwo"
    calls = first["tool_calls"]
    assert isinstance(calls, list)
    assert [call["id"] for call in calls] == ["functions.f:0", "functions.g:1"]
    assert second == {"role": "assistant", "content": "three", "reasoning_content": "hm"}


def test_control_tokens_are_kept_and_told_where_that_was_asked() -> None:
    row = {"messages": turns("u <|im_end|> is no [EOS]")}

    found = extracted(CHAT, row, Mode.LAST_USER, keep_control_tokens=True)

    assert found == Extracted(
        row["messages"], None, None, ("control_token", "bracket_special"), None
    )


def test_control_tokens_in_functions_count_too() -> None:
    tools = [{"name": "f", "description": "ends with <|im_end|>"}]

    with pytest.raises(SkippedError) as raised:
        extracted(CHAT, {"messages": turns("u Hi"), "tools": tools}, Mode.LAST_USER)

    assert raised.value.detail == "a call, a function or reasoning holds <|im_end|>"


@pytest.mark.parametrize("module", [control_tokens, thinking])
def test_the_examples_are_true(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # a module, by its list
