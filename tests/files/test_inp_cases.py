"""The failure cases of input files (inp-*), as far as files go; intake and pages have the rest."""

import base64
import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import InputError
from app.files.prompt_ids import DuplicateIds
from app.files.prompts import Rejected, find_prompts, list_partitions, same_files, scan
from tests.files.records_of import INPUTS, prompts_in, rejected_in, said, user, write_jsonl

MULTI = (
    "H4sIAAAAAAACA6tWykxRslJQSjdU0lFQyk0tLk5MTy0GikRXKxXl56SC5EqLU4tAssn5eSWpeSUgofy8VKXa2Fquaph2I5K0"
    "l5Tng7UDAFCmL4x+AAAAH4sIAAAAAAACA6tWykxRslJQSjdW0lFQyk0tLk5MTy0GikRXKxXl56SC5EqLU4tAssn5eSWpeSUgoZ"
    "KMotRUpdrYWq5qmAEmJBmQll9aBNYPAABI2K+BAAAA"
)


def test_inp_01_only_the_newline_byte_ends_a_record() -> None:
    prompts = prompts_in(INPUTS / "separators.jsonl")

    assert [prompt.key for prompt in prompts] == ["ls", "ps", "nel"]
    assert [said(prompt) for prompt in prompts] == [
        "one\u2028two",
        "one\u2029two",
        "one\u0085two",
    ]


def test_inp_02_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    marked = INPUTS / "bom.jsonl"
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(marked.read_bytes().removeprefix(b"\xef\xbb\xbf"))

    assert marked.read_bytes() != plain.read_bytes()
    assert list(scan(marked)) == list(scan(plain))
    assert [prompt.key for prompt in prompts_in(marked)] == ["first", "second"]


def test_inp_03_carriage_returns_and_blank_lines_are_no_content() -> None:
    prompts = prompts_in(INPUTS / "crlf_blank.jsonl")

    assert [(one.key, one.index, one.line) for one in prompts] == [
        ("a", 0, 1),
        ("b", 1, 3),
        ("c", 2, 5),
    ]
    assert not any("\r" in said(prompt) for prompt in prompts)


def test_inp_03_an_empty_file_has_no_records() -> None:
    told: list[tuple[int, int]] = []

    records = list(scan(INPUTS / "empty.jsonl", on_progress=lambda *step: told.append(step)))

    assert records == []
    assert told == [(0, 0)]


def test_inp_04_broken_json_in_the_middle_is_rejected_with_its_line() -> None:
    path = INPUTS / "broken_middle.jsonl"

    assert [prompt.key for prompt in prompts_in(path)] == ["a", "c", "d"]
    broken, no_object = rejected_in(path)
    assert (broken.line, broken.index, broken.key) == (2, 1, None)
    assert broken.reason.startswith("broken JSON at character ")
    assert (no_object.line, no_object.index) == (4, 3)
    assert no_object.reason == "a list, not an object"


def test_inp_05_half_of_a_surrogate_pair_is_rejected_under_its_id() -> None:
    path = INPUTS / "surrogate.jsonl"

    pair, plain = prompts_in(path)
    (lone,) = rejected_in(path)

    assert said(pair) == said(plain) == "smile \N{GRINNING FACE}"
    assert (lone.key, lone.line) == ("lone", 3)
    assert lone.reason.startswith("not valid Unicode")
    assert lone.reason.encode()  # it can be written to a page and a log


def test_inp_06_the_same_id_twice_is_listed_and_told_apart_by_number() -> None:
    seen = DuplicateIds()

    prompts = prompts_in(INPUTS / "dup_id.jsonl")
    for prompt in prompts:
        seen.add(prompt.key, prompt.line)

    assert [(prompt.key, prompt.index) for prompt in prompts] == [("x", 0), ("y", 1), ("x", 2)]
    assert seen.sentences() == ['id "x" at lines 1 and 3']


def test_inp_07_all_shapes_of_a_conversation_give_the_same_messages() -> None:
    prompts = prompts_in(INPUTS / "mixed_shapes.jsonl")

    assert [prompt.key for prompt in prompts] == ["s1", "s2", "s3", "s4"]
    for prompt in prompts:
        assert prompt.messages == [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": "Name a colour."},
        ]
    assert len({prompt.prompt_sha256 for prompt in prompts}) == 1


def test_inp_08_only_text_is_content() -> None:
    path = INPUTS / "content_kinds.jsonl"

    prompts = {prompt.key: said(prompt) for prompt in prompts_in(path)}
    reasons = {rejected.key: rejected.reason for rejected in rejected_in(path)}

    assert prompts == {"text": "hello", "parts": "hello"}
    assert reasons == {
        "null": "messages[0] has no content (null)",
        "empty": "messages[0] is empty",
        "blank": "messages[0] is empty",
        "number": "messages[0] has a number as content, not a text",
        "image": 'messages[0] has a part of type "image_url"; only text can be sent',
    }


def test_inp_11_all_members_of_a_gzip_are_read(tmp_path: Path) -> None:
    path = tmp_path / "multi.jsonl.gz"
    path.write_bytes(base64.b64decode(MULTI))

    assert len(prompts_in(path)) == 4
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 4


def test_inp_11_a_gzip_cut_short_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(base64.b64decode(MULTI)[:-12])

    with pytest.raises(InputError, match=r"cut\.jsonl\.gz is damaged or cut short"):
        list(scan(path))


def test_inp_12_a_line_of_20_mb_loads_in_bounded_memory(tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "big.jsonl",
        [user("r1", "one"), user("r2", "a" * 20_000_000), user("r3", "three")],
    )
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from app.files.prompts import scan\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "keys = [record.key for record in scan(Path(sys.argv[1]))]\n"
        "print(*keys, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )

    *keys, more_kb = done.stdout.split()
    assert keys == ["r1", "r2", "r3"]
    assert int(more_kb) < 200_000  # the case allows 400 MB for the whole program


def test_inp_12_a_line_beyond_the_limit_is_rejected_and_the_next_one_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.write(b'{"id": "x", "text": "')
        for _ in range(70):
            file.write(b"a" * (1 << 20))
        file.write(b'"}\n{"id": "y", "text": "after"}\n')

    huge, after = scan(path)

    assert isinstance(huge, Rejected)
    assert (huge.line, huge.reason) == (1, "the line is longer than 64 MB")
    assert (after.key, after.line, after.index) == ("y", 2, 1)


def test_inp_13_partitions_with_the_same_base_name_are_two_files(tmp_path: Path) -> None:
    day1 = write_jsonl(tmp_path / "day1" / "prompts.jsonl", [user("a", "x"), user("b", "y")])
    day2 = write_jsonl(tmp_path / "day2" / "prompts.jsonl", [user("a", "z")])

    assert list_partitions(tmp_path) == ["day1", "day2"]
    assert find_prompts(tmp_path, "day1") == day1
    assert same_files({"day1": day1, "day2": day2}) == []


def test_inp_13_the_same_file_given_twice_is_found_out(tmp_path: Path) -> None:
    part = write_jsonl(tmp_path / "day1" / "part.jsonl", [user("a", "x")])
    link = tmp_path / "link.jsonl"
    link.symlink_to(part)
    dotted = tmp_path / "day1" / ".." / "day1" / "part.jsonl"

    repeated = same_files({"first": part, "dotted": dotted, "linked": link})

    assert repeated == [
        f"partition dotted reads {dotted}, which is the prompt file of first already",
        f"partition linked reads {link}, which is the prompt file of first already",
    ]
