"""The failure cases of input files (inp-*) through `prepare`: what becomes of their rows."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import InputError
from app.sources.finding import find_sources
from app.sources.spec import load_prepare_spec
from tests.sources.desk import INPUTS, MULTI_MEMBER_GZIP, Desk, user


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def case(name: str) -> str:
    return str(INPUTS / f"{name}.jsonl")


def test_inp_01_only_the_newline_byte_ends_a_row(desk: Desk) -> None:
    kept = desk.prepare(path=case("separators"))

    assert kept.said() == {"ls": "one\u2028two", "ps": "one\u2029two", "nel": "one\u0085two"}
    kept.assert_whole(3)


def test_inp_02_a_byte_order_mark_changes_nothing(desk: Desk) -> None:
    kept = desk.prepare(path=case("bom"))

    assert list(kept.said()) == ["first", "second"]
    kept.assert_whole(2)


def test_inp_03_blank_lines_are_no_rows_and_an_empty_file_is_ready(desk: Desk) -> None:
    kept = desk.prepare(path=case("crlf_blank"))

    assert [(one["row"], one["line"]) for one in kept.places] == [(0, 1), (1, 3), (2, 5)]
    assert not any("\r" in text for text in kept.said().values())
    kept.assert_whole(3)

    empty = desk.prepare('recipe = "chat_messages"', path=case("empty"), overwrite=True)

    assert empty.report["characters"] == {"p50": 0, "p95": 0, "max": 0}
    empty.assert_whole(0)


def test_inp_04_broken_rows_are_skipped_with_line_and_reason(desk: Desk) -> None:
    kept = desk.prepare(path=case("broken_middle"))

    assert list(kept.said()) == ["a", "c", "d"]
    broken, no_object = kept.skipped
    assert (broken["row"], broken["line"], broken["reason"]) == (1, 2, "unreadable")
    assert broken["detail"].startswith("broken JSON at character ")
    assert (no_object["row"], no_object["line"]) == (3, 4)
    assert no_object["detail"] == "a list, not an object"
    kept.assert_whole(5)


def test_inp_05_half_of_a_surrogate_pair_is_unreadable(desk: Desk) -> None:
    kept = desk.prepare(path=case("surrogate"))

    assert kept.said() == {"pair": "smile \N{GRINNING FACE}"}
    assert kept.reasons() == {1: "duplicate", 2: "unreadable"}  # "plain" says the same as "pair"
    assert kept.skipped[1]["detail"].startswith("not valid Unicode")
    kept.assert_whole(3)


def test_inp_06_the_same_id_twice_is_told_apart(desk: Desk) -> None:
    kept = desk.prepare(path=case("dup_id"))

    assert kept.said() == {"x": "first x", "y": "only y", "x~2": "second x"}
    kept.assert_whole(3)


def test_inp_07_all_shapes_in_one_file_say_the_same(desk: Desk) -> None:
    """They are one prompt, so three of the four are twins of the first."""
    kept = desk.prepare(path=case("mixed_shapes"))

    assert [one["messages"] for one in kept.prompts] == [
        [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": "Name a colour."},
        ]
    ]
    assert [(one["reason"], one["of"]) for one in kept.skipped] == [("duplicate", 0)] * 3
    assert kept.report["rows_by_other_recipes"] == {"sharegpt": 3}
    kept.assert_whole(4)


def test_inp_08_only_text_is_content(desk: Desk) -> None:
    kept = desk.prepare(path=case("content_kinds"))

    assert kept.said() == {"text": "hello"}
    assert kept.reasons() == {
        1: "duplicate",  # the parts "hel" and "lo" are joined
        2: "empty_prompt",
        3: "empty_prompt",
        4: "empty_prompt",
        5: "bad_schema",
        6: "bad_schema",
    }
    kept.assert_whole(7)


def test_inp_11_all_members_of_a_gzip_are_read_and_a_cut_one_is_an_error(desk: Desk) -> None:
    (desk.folder / "multi.jsonl.gz").write_bytes(MULTI_MEMBER_GZIP)
    (desk.folder / "cut.jsonl.gz").write_bytes(MULTI_MEMBER_GZIP[:-12])

    kept = desk.prepare(path="multi.jsonl.gz")

    kept.assert_whole(4)
    before = kept.folder.joinpath("prompts.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"cut\.jsonl\.gz is damaged or cut short"):
        desk.prepare(path="cut.jsonl.gz", overwrite=True)
    assert kept.folder.joinpath("prompts.jsonl").read_bytes() == before


def test_inp_12_a_line_of_20_mb_is_a_row_in_bounded_memory(desk: Desk) -> None:
    desk.write("p.jsonl", user("r1", "one"), user("r2", "a" * 20_000_000), user("r3", "three"))
    program = (
        "import json, resource, sys\n"
        "from pathlib import Path\n"
        "from tests.sources.desk import Desk\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "kept = Desk(Path(sys.argv[1])).prepare('max_characters = 1_000_000')\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(json.dumps([peak - before, kept.skipped]))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(desk.folder)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    more_kb, (skip,) = json.loads(done.stdout)
    assert (skip["row"], skip["reason"]) == (1, "too_long")
    assert skip["detail"] == "20,000,000 characters, max_characters is 1,000,000"
    assert more_kb < 200_000  # the case allows 400 MB for the whole program


def test_inp_13_files_of_one_name_are_two_files_of_one_source(desk: Desk) -> None:
    desk.write("raw/day1/part.jsonl", user("a", "x"), user("b", "y"))
    desk.write("raw/day2/part.jsonl", user("a", "z"))

    kept = desk.prepare(path="raw")

    assert kept.said() == {"a": "x", "b": "y", "a~2": "z"}
    assert [(one["row"], one["file"], one["line"]) for one in kept.places] == [
        (0, "raw/day1/part.jsonl", 1),
        (1, "raw/day1/part.jsonl", 2),
        (2, "raw/day2/part.jsonl", 1),
    ]
    kept.assert_whole(3)


def test_inp_13_the_same_file_twice_is_refused_also_through_a_symlink(desk: Desk) -> None:
    part = desk.write("day1/part.jsonl", user("a", "x"))
    (desk.folder / "link.jsonl").symlink_to(part)
    path = desk.spec(
        '[source.a]\npath = "day1/part.jsonl"\n'
        '[source.b]\npath = "./day1/../day1/part.jsonl"\n'
        '[source.c]\npath = ["link.jsonl"]\n'
    )

    with pytest.raises(InputError) as refused:
        find_sources(load_prepare_spec(path), path)

    assert str(refused.value).count("is read by [source.a] already") == 2
