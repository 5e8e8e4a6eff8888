"""What a prompt record may be, what makes it unusable, and what its digest is of."""

from array import array
from pathlib import Path

import pytest

from app.files.prompt_messages import chat_of, plain_chat
from app.files.prompts import Prompt, Rejected
from tests.files.records_of import only, prompts_in, rejected_in, user, write_jsonl


def test_a_record_without_id_is_called_by_its_number(tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "p.jsonl", [{"text": "a"}, {"id": 70, "text": "b"}, {"text": "c"}]
    )

    assert [prompt.key for prompt in prompts_in(path)] == ["0", "70", "2"]


def test_token_ids_are_taken_as_they_are(tmp_path: Path) -> None:
    record = only(write_jsonl(tmp_path / "p.jsonl", [{"id": "a", "input_ids": [1, 163_839, 2]}]))

    assert isinstance(record, Prompt)
    assert record.input_ids == array("I", [1, 163_839, 2])
    assert record.messages is None
    assert record.text is None


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"input_ids": []}, "input_ids is empty"),
        ({"input_ids": [1, True]}, "something else than whole numbers"),
        ({"input_ids": [1, 2.0]}, "something else than whole numbers"),
        ({"input_ids": [-1]}, "below 0"),
        ({"input_ids": [2**32]}, "2\\^32 and more"),
        ({"input_ids": "1 2"}, "input_ids is a text"),
        ({"text": "  "}, "text is empty"),
        ({"text": 5}, "text is a number"),
        ({"prompt": "hello"}, "has none of input_ids, messages, conversations and text"),
        ({"messages": [{"role": "user", "content": "a"}], "turns": "last"}, 'else than "all"'),
        ({"text": "a", "turns": "all"}, 'turns = "all" needs messages'),
        (
            {
                "messages": [
                    {"role": "user", "content": "a"},
                    {"role": "assistant", "content": "b"},
                    {"role": "user", "content": "c"},
                ],
                "turns": "all",
            },
            "holds a turn of an assistant",
        ),
        ({"messages": "hello"}, "messages is not a list"),
        ({"messages": []}, "no user turn"),
        ({"messages": ["hello"]}, r"messages\[0\] is not an object"),
        ({"messages": [{"role": "assistant", "content": "hi"}]}, "no user turn"),
        ({"messages": [{"role": "system", "content": "hi"}]}, "ends with a system turn"),
        ({"messages": [{"role": "narrator", "content": "hi"}]}, 'the role "narrator"; known: user'),
        ({"messages": [{"content": "hi"}]}, r"messages\[0\] has no role"),
        ({"messages": [{"role": "user"}]}, "no content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "only text can be sent"),
        ({"id": 1.5, "text": "a"}, "id is a number"),
        ({"id": True, "text": "a"}, "id is true or false"),
        ({"id": "x" * 513, "text": "a"}, "id has 513 characters"),
        ({"text": "a", "tools": "x"}, "tools is a text"),
        ({"text": "a", "sampling": 3}, "sampling is a number"),
        ({"text": "a", "sampling": {"top_p": 2}}, "sampling.top_p: 2 is not a number above 0"),
        ({"text": "a", "sampling": {"temprature": 1}}, "did you mean temperature?"),
        ({"text": "a", "sampling": {"max_new_tokens": 0}}, "sampling.max_new_tokens"),
        ({"text": "a", "chat_template_kwargs": [1]}, "chat_template_kwargs is a list"),
    ],
)
def test_an_unusable_record_says_why(
    tmp_path: Path, record: dict[str, object], reason: str
) -> None:
    rejected = only(write_jsonl(tmp_path / "p.jsonl", [record]))

    assert isinstance(rejected, Rejected)
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(rejected.reason)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "a", "text": NaN}', "NaN and Infinity are not JSON"),
        (b'{"id": "a", "text": "\xff"}', "not valid Unicode: byte 22 of the line is not UTF-8"),
        (b'{"id": "a" "text": 1}', "broken JSON at character"),
        (b"[" * 5000, "broken JSON at character"),
        (b"null", "null, not an object"),
    ],
)
def test_a_line_that_is_no_json_says_why(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(line)

    rejected = only(path)

    assert isinstance(rejected, Rejected)
    assert rejected.reason.startswith(reason)


def test_a_rejected_record_keeps_none_of_its_content(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    secret = b"do-not-show"
    path.write_bytes(
        b'{"id": "a", "text": "' + secret + b'\n{"messages": [{"role": "user", "content": "'
        + secret + b'"}, {"role": "system", "content": "x"}]}\n"' + secret + b'"\n'
        + b'{"text": "' + secret + b' \\ud800"}\n'
    )  # fmt: skip

    rejected = rejected_in(path)

    assert len(rejected) == 4
    assert not any("do-not-show" in str(record) for record in rejected)


def test_answers_at_the_end_are_dropped_and_earlier_ones_kept(tmp_path: Path) -> None:
    turns = [
        {"from": "human", "value": "one"},
        {"from": "gpt", "value": "1"},
        {"from": "human", "value": "two"},
        {"from": "gpt", "value": "2"},
        {"from": "gpt", "value": "2b"},
    ]

    record = only(write_jsonl(tmp_path / "p.jsonl", [{"conversations": turns}]))

    assert isinstance(record, Prompt)
    assert record.messages == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "two"},
    ]


def test_tool_turns_pass_with_what_they_need(tmp_path: Path) -> None:
    call = {"id": "functions.level:0", "type": "function", "function": {"name": "level"}}
    turns = [
        {"role": "user", "content": "How high?", "weight": 1},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "", "tool_call_id": "functions.level:0"},
    ]
    tools = [{"type": "function", "function": {"name": "level"}}]

    record = only(write_jsonl(tmp_path / "p.jsonl", [{"messages": turns, "tools": tools}]))

    assert isinstance(record, Prompt)
    assert record.tools == tools
    assert record.messages == [
        {"role": "user", "content": "How high?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "", "tool_call_id": "functions.level:0"},
    ]


def test_two_different_system_texts_are_not_chosen_between(tmp_path: Path) -> None:
    record = {"system": "A", **user("a", "x")}
    record["messages"] = [{"role": "system", "content": "B"}, {"role": "user", "content": "x"}]

    rejected = only(write_jsonl(tmp_path / "p.jsonl", [record]))

    assert isinstance(rejected, Rejected)
    assert "two different system texts" in rejected.reason


def test_a_record_may_bring_its_own_settings(tmp_path: Path) -> None:
    own = {"temperature": 0.2, "max_new_tokens": 9, "top_k": None}
    plain, other = prompts_in(
        write_jsonl(
            tmp_path / "p.jsonl",
            [user("a", "x"), {**user("a", "x"), "sampling": own, "chat_template_kwargs": {"t": 1}}],
        )
    )

    assert plain.sampling == {}
    assert other.sampling == {"temperature": 0.2, "max_new_tokens": 9}
    assert other.chat_template_kwargs == {"t": 1}
    assert plain.prompt_sha256 != other.prompt_sha256


def test_the_digest_is_of_what_is_asked_and_nothing_else(tmp_path: Path) -> None:
    turned = {"source": "web", "messages": [{"content": "x", "role": "user"}], "id": "b"}
    one, same, other = prompts_in(
        write_jsonl(tmp_path / "p.jsonl", [user("a", "x"), turned, user("a", "y")])
    )

    assert one.prompt_sha256 == same.prompt_sha256
    assert one.prompt_sha256 != other.prompt_sha256
    assert len(one.prompt_sha256) == 64


@pytest.mark.parametrize(
    "turn",
    [
        {"role": "user", "content": "x"},
        {"content": "x", "role": "user"},
        {"role": "user", "content": " "},
        {"role": "user", "content": ["x"]},
        {"role": "human", "content": "x"},
        {"role": "user", "content": "x", "name": "n"},
    ],
)
def test_the_short_cut_says_what_the_long_way_says(turn: dict[str, object]) -> None:
    short = plain_chat({"messages": [turn]})

    assert short is None or short == chat_of({"messages": [turn]})


def test_the_short_cut_is_taken_by_the_commonest_record() -> None:
    turns = [{"role": "user", "content": "x"}]

    assert plain_chat({"messages": turns}) is turns
