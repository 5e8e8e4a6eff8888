"""Prompt files in Parquet, with pyarrow and without it."""

import sys
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from app.errors import InputError
from app.files.prompts import Prompt, scan
from tests.files.records_of import prompts_in, rejected_in, write_jsonl

ROWS = [
    {"id": "a", "messages": [{"role": "user", "content": "x"}], "input_ids": None},
    {"id": "b", "messages": None, "input_ids": [1, 2]},
    {"id": "c", "messages": [{"role": "user", "content": None}], "input_ids": None},
]


def write_parquet(path: Path) -> Path:
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    return path


def test_rows_of_parquet_are_records_like_any_other(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "p.parquet")
    same = write_jsonl(tmp_path / "p.jsonl", ROWS)

    told: list[tuple[int, int]] = []
    records = list(scan(path, on_progress=lambda *step: told.append(step)))

    assert [record.key for record in records] == ["a", "b", "c"]
    assert prompts_in(path) == prompts_in(same)
    assert [one.reason for one in rejected_in(path)] == [one.reason for one in rejected_in(same)]
    assert isinstance(records[0], Prompt)
    assert told[-1][0] == told[-1][1] == path.stat().st_size


def test_a_parquet_file_cut_short_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "p.parquet")
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(InputError, match=r"p\.parquet is damaged or cut short"):
        list(scan(path))


def test_a_missing_parquet_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*gone\.parquet"):
        list(scan(tmp_path / "gone.parquet"))


def test_without_pyarrow_the_remedy_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # what an import meets where it is missing

    with pytest.raises(InputError, match=r'needs pyarrow.*pip install "longwatch\[parquet\]"'):
        list(scan(path))
