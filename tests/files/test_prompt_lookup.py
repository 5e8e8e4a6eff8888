"""One prompt looked up by its number: really that one, and no further than a bound."""

import gzip
from pathlib import Path

import orjson
import pytest

from app.errors import StorageError
from app.files import prompt_lookup
from app.files.prompt_lookup import prompt_at, prompt_ids_at
from app.files.prompts import Prompt, scan

RECORDS = [{"id": f"r{n}", "text": f"prompt {n}\nof two lines"} for n in range(5)]
BODY = b"\xef\xbb\xbf" + b"\n \r\n".join(orjson.dumps(each) for each in RECORDS)


def written(folder: Path, packed: bool = False) -> Path:
    path = folder / ("p.jsonl.gz" if packed else "p.jsonl")
    path.write_bytes(gzip.compress(BODY) if packed else BODY)
    return path


@pytest.mark.parametrize("is_packed", [False, True])
def test_it_finds_what_the_scan_found(tmp_path: Path, is_packed: bool) -> None:
    path = written(tmp_path, is_packed)
    scanned = [each for each in scan(path) if isinstance(each, Prompt)]

    assert len(scanned) == 5
    for each in scanned:
        assert prompt_at(path, each.index, each.prompt_sha256) == each


def test_another_prompt_at_its_place_is_not_shown(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(StorageError, match="has been changed"):
        prompt_at(path, 1, "0" * 64)
    with pytest.raises(StorageError, match="no record 9 any more"):
        prompt_at(path, 9, "0" * 64)
    with pytest.raises(StorageError, match="not there any more"):
        prompt_at(tmp_path / "gone.jsonl", 0, "0" * 64)


def test_it_reads_no_further_than_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    sha = [each.prompt_sha256 for each in scan(path) if isinstance(each, Prompt)]
    monkeypatch.setattr(prompt_lookup, "MOST_READ_BYTES", len(BODY) // 2)

    assert prompt_at(path, 0, sha[0]).key == "r0"
    with pytest.raises(StorageError, match="further down"):
        prompt_at(path, 4, sha[4])


def test_ids_are_those_at_the_offset(tmp_path: Path) -> None:
    path = tmp_path / "p.u32"
    path.write_bytes(b"".join(n.to_bytes(4, "little") for n in range(9)))

    assert prompt_ids_at(path, 3, 4).tolist() == [3, 4, 5, 6]
    with pytest.raises(StorageError, match="ends before token 10"):
        prompt_ids_at(path, 6, 4)
