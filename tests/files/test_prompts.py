"""Prompt files beyond the cases: where they are found, what a record may be, progress, packing."""

import gzip
from array import array
from pathlib import Path

import orjson
import pytest
import zstandard

from app.errors import InputError
from app.files.prompt_ids import DuplicateIds
from app.files.prompt_messages import chat_of, plain_chat
from app.files.prompts import PROGRESS_EVERY, Prompt, Rejected, find_prompts, list_partitions, scan
from tests.files.records_of import INPUTS, only, prompts_in, rejected_in, said, user, write_jsonl


def test_prompts_are_found_in_a_folder_or_beside_each_other(tmp_path: Path) -> None:
    packed = tmp_path / "b" / "prompts.jsonl.zst"
    write_jsonl(tmp_path / "a.jsonl", [user("1", "x")])
    write_jsonl(packed, [])
    write_jsonl(tmp_path / "c.parquet", [])

    assert list_partitions(tmp_path) == ["a", "b", "c"]
    assert find_prompts(tmp_path, "a") == tmp_path / "a.jsonl"
    assert find_prompts(tmp_path, "b") == packed
    assert find_prompts(tmp_path, "c") == tmp_path / "c.parquet"


def test_outputs_and_hidden_files_are_no_partitions(tmp_path: Path) -> None:
    for name in ("responses", "rejected", "failed", "responses-1-2-3", ".hidden", "real"):
        write_jsonl(tmp_path / f"{name}.jsonl", [])
    (tmp_path / "no_prompts_inside").mkdir()

    assert list_partitions(tmp_path) == ["real"]


def test_a_missing_partition_lists_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"looked for B9/prompts\.jsonl, .*B9\.parquet"):
        find_prompts(tmp_path, "B9")


def test_two_prompt_files_of_one_partition_are_not_chosen_between(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "B1.jsonl", [])
    write_jsonl(tmp_path / "B1" / "prompts.jsonl", [])

    with pytest.raises(InputError, match="more than one prompt file"):
        find_prompts(tmp_path, "B1")


@pytest.mark.parametrize("name", ["../etc", "a b", "", ".hidden", "a/b", "ü", "x" * 101])
def test_a_partition_name_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is not usable"):
        find_prompts(tmp_path, name)


def test_an_unusable_name_is_refused_where_all_are_asked_for(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "my part.jsonl", [])

    with pytest.raises(InputError, match="my part"):
        list_partitions(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        list_partitions(tmp_path / "nowhere")


def test_a_prompt_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*gone\.jsonl: No such file"):
        list(scan(tmp_path / "gone.jsonl"))


def test_a_utf_16_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl"
    path.write_text('{"id": "a"}\n', encoding="utf-16")

    with pytest.raises(InputError, match=r"UTF-16.*iconv"):
        list(scan(path))


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
        ({"text": "a", "sampling": {"temprature": 1}}, 'did you mean "temperature"'),
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


@pytest.mark.parametrize("ending", ["jsonl.gz", "jsonl.zst"])
def test_packed_files_read_like_plain_ones(tmp_path: Path, ending: str) -> None:
    plain = write_jsonl(tmp_path / "p.jsonl", [user(f"r{n}", "ä" * n) for n in range(1, 3000)])
    packed = tmp_path / f"p.{ending}"
    pack = gzip.compress if ending.endswith("gz") else zstandard.ZstdCompressor().compress
    whole = plain.read_bytes()
    packed.write_bytes(pack(whole[:50_001]) + pack(whole[50_001:]))

    assert list(scan(packed)) == list(scan(plain))


@pytest.mark.parametrize("ending", ["jsonl.gz", "jsonl.zst"])
@pytest.mark.parametrize("missing", [1, 5, 200])
def test_a_packed_file_cut_short_is_never_a_shorter_run(
    tmp_path: Path, ending: str, missing: int
) -> None:
    plain = write_jsonl(tmp_path / "p.jsonl", [user(f"r{n}", str(n**5)) for n in range(500)])
    pack = gzip.compress if ending.endswith("gz") else zstandard.ZstdCompressor().compress
    packed = tmp_path / f"p.{ending}"
    packed.write_bytes(pack(plain.read_bytes())[:-missing])

    with pytest.raises(InputError, match=rf"p\.{ending} is damaged or cut short"):
        list(scan(packed))


@pytest.mark.parametrize("ending", ["jsonl.gz", "jsonl.zst"])
@pytest.mark.parametrize("content", [b"", b'{"id": "a", "text": "not packed"}\n'])
def test_a_file_that_is_not_packed_at_all_is_refused(
    tmp_path: Path, ending: str, content: bytes
) -> None:
    path = tmp_path / f"p.{ending}"
    path.write_bytes(content)

    with pytest.raises(InputError, match=rf"p\.{ending} is "):
        list(scan(path))


def test_progress_is_told_in_bytes_and_ends_at_all(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "p.jsonl", [user(str(n), "x") for n in range(PROGRESS_EVERY * 2)])
    told: list[tuple[int, int]] = []

    list(scan(path, on_progress=lambda *step: told.append(step)))

    size_bytes = path.stat().st_size
    assert len(told) == 3
    assert [step[0] for step in told] == sorted(step[0] for step in told)
    assert told[-1] == (size_bytes, size_bytes)
    assert {step[1] for step in told} == {size_bytes}


def test_leading_blank_lines_count_as_lines_but_not_as_records(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\n\n" + orjson.dumps(user("a", "x")))

    record = only(path)

    assert (record.key, record.index, record.line) == ("a", 0, 3)
    assert isinstance(record, Prompt)
    assert said(record) == "x"


def test_a_file_of_nothing_but_a_mark_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"\xef\xbb\xbf")

    assert list(scan(path)) == []


def test_duplicates_are_cut_to_a_readable_list() -> None:
    seen = DuplicateIds()
    for line in range(1, 31):
        seen.add(f"k{line % 3}", line)

    assert len(seen) == 3
    assert seen.sentences(1) == ['id "k1" at lines 1, 4, 7, 10, 13 and 5 more', "and 2 more ids"]


def test_html_in_a_prompt_is_passed_on_unchanged() -> None:
    prompts = prompts_in(INPUTS / "html_text.jsonl")

    assert said(prompts[0]) == "<script>window.__hit=1</script>"
    assert said(prompts[3]) == "{{7*7}} ${7*7} <b>bold</b> &amp; ]]>"
