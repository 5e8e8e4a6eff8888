"""`merge` as it is typed: what it tells, and what it refuses in words."""

from pathlib import Path

import pytest

from tests.api.home import Home
from tests.cli.conftest import Longwatch


def test_samples_without_an_answer_are_counted_and_a_living_run_is_told(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    home.claim("B1_chat", 2)

    told = longwatch("merge", "night", "--out", str(tmp_path / "merged"))

    assert told.code == 0
    assert told.error == 'run "night" has not ended: what it has so far is merged\n'
    lines = told.out.splitlines()
    assert lines[0].startswith("B1_chat  0 of 10 samples")
    assert lines[0].endswith("left out: 8 pending, 2 running")
    assert lines[1].endswith("left out: 10 pending")
    assert lines[2].startswith("0 records, 0 tokens, 0 of them supervised, in 0 files: ")
    assert longwatch("merge", "night", "--out", str(tmp_path / "merged")).out.endswith(
        "it was merged already: nothing was changed\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--finish", "abort"], '--finish: "abort" is not known. Take length, stop, tool'),
        (["--with", "failed"], '--with: "failed" is not known. Take empty, suspect'),
        (["--shard-tokens", "many"], "--shard-tokens: "),
        (["--shard-tokens", "0"], '--shard-tokens: "0" is not a whole number of tokens above 0'),
        (["--think-ids", "1"], '--think-ids "1" is not two token ids. Write them as 163606,163607'),
        (["--existing", "/nowhere"], "/nowhere has no partition with answers.jsonl"),
    ],
    ids=["finish", "with", "tokens", "none", "ids", "existing"],
)
def test_what_cannot_be_is_refused_in_words(
    longwatch: Longwatch, home: Home, tmp_path: Path, words: list[str], said: str
) -> None:
    told = longwatch("merge", "night", "--out", str(tmp_path / "merged"), *words)

    assert told.code == 1
    assert told.error.startswith(f"error: {said}")
    assert told.error.count("\n") == 1
    assert not (tmp_path / "merged").exists()


def test_existing_answers_need_a_server(longwatch: Longwatch, home: Home, tmp_path: Path) -> None:
    (tmp_path / "prepared" / "A1_x").mkdir(parents=True)
    (tmp_path / "prepared" / "A1_x" / "answers.jsonl").touch()
    told = longwatch("merge", "night", "--existing", str(tmp_path / "prepared"))
    assert told.code == 1
    assert "name it with --server-url" in told.error.lower()


def test_two_runs_with_a_partition_of_one_name_are_refused(
    longwatch: Longwatch, home: Home, tmp_path: Path
) -> None:
    home.add_run("later")
    told = longwatch("merge", "night", "later", "--out", str(tmp_path / "merged"))
    assert told.code == 1
    assert "two partitions are called B1_chat" in told.error
