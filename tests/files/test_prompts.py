"""Prompt files beyond the cases: where they are found, progress, packing."""

import gzip
from pathlib import Path

import orjson
import pytest
import zstandard

from app.errors import InputError
from app.files.prompt_ids import DuplicateIds
from app.files.prompts import PROGRESS_EVERY, Prompt, find_prompts, list_partitions, scan
from tests.files.records_of import INPUTS, only, prompts_in, said, user, write_jsonl


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
    with pytest.raises(InputError, match=r"Looked for B9/prompts\.jsonl, .*B9\.parquet"):
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
