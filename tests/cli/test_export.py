"""`export`: whole lines in input order, in mid-run, and never over a run's own files."""

from pathlib import Path

from tests.api.home import Home
from tests.cli.conftest import Longwatch


def test_valid_lines_are_copied_in_input_order_in_mid_run(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    home.keep("B1_chat", 3)
    home.claim("B1_chat", 2)
    told = longwatch("export", "night", str(tmp_path / "so-far"))
    assert (told.code, told.error) == (0, "")
    copied = (tmp_path / "so-far" / "B1_chat" / "responses.jsonl").read_bytes()
    assert copied == b'{"id":"a0"}\n{"id":"a1"}\n{"id":"a2"}\n'
    assert (tmp_path / "so-far" / "B2_code" / "responses.jsonl").read_bytes() == b""
    assert "(running): 3 answers in" in told.out


def test_an_export_is_replaced_by_a_later_one(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    target = tmp_path / "so-far"
    longwatch("export", "night", str(target))
    home.keep("B1_chat", 2)
    longwatch("export", "night", str(target))
    assert (target / "B1_chat" / "responses.jsonl").read_bytes().count(b"\n") == 2


def test_the_output_of_a_run_is_never_exported_over(longwatch: Longwatch, home: Home) -> None:
    home.keep("B1_chat", 1)
    before = sorted(home.output_dir.rglob("*"))
    for folder in (home.output_dir, home.output_dir / "B1_chat", home.output_dir / ".." / "out"):
        told = longwatch("export", "night", str(folder))
        assert told.code == 1
        assert "is an output folder of a run" in told.error
    assert sorted(home.output_dir.rglob("*")) == before


def test_a_line_that_is_not_there_is_told_and_nothing_is_replaced(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    target = tmp_path / "so-far"
    home.keep("B1_chat", 2)
    longwatch("export", "night", str(target))
    shard = next((home.output_dir / "B1_chat").glob("responses-*"))
    shard.write_bytes(b'{"id":"a0"}\n')
    told = longwatch("export", "night", str(target))
    assert told.code == 1
    assert str(shard) in told.error
    assert (target / "B1_chat" / "responses.jsonl").read_bytes().count(b"\n") == 2
