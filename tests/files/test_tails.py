"""Lines of answers: how they are written, and how they are found again after a kill."""

import signal
import subprocess
import sys
from array import array
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from app.core.types import Segment
from app.errors import StorageError
from app.files.records import encode, line_rid, parse
from app.files.tails import read_tail, rewrite, scan_lines, stat
from tests.files.records_of import answer


def write_answers(path: Path, *numbers: int) -> list[bytes]:
    lines = [encode(answer(number)) for number in numbers]
    path.write_bytes(b"".join(lines))
    return lines


def test_a_line_says_everything_in_one_order_with_the_request_id_first() -> None:
    record = answer(
        5,
        replica=2,
        flags=("loop",),
        segments=(Segment(from_token=0, rid="r1", server="http://a:1", gen_id="g1"),),
        started_at=datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC),
    )

    line = encode(record)

    assert list(orjson.loads(line)) == [
        "rid", "id", "index", "replica", "partition", "status", "finish_reason", "flags",
        "reasoning_end",
        "prompt_tokens", "completion_tokens", "max_new_tokens", "attempts", "segments", "gen_id",
        "started_at", "finished_at", "prompt_sha256", "text", "output_ids",
    ]  # fmt: skip
    assert orjson.loads(line)["output_ids"] == [87, 88, 2]
    assert orjson.loads(line)["started_at"] == "2026-01-02T03:04:05.678+00:00"
    assert orjson.loads(line)["segments"] == [
        {"from_token": 0, "rid": "r1", "server": "http://a:1", "gen_id": "g1"}
    ]


def test_a_prompt_that_runs_once_has_no_replica() -> None:
    assert "replica" not in orjson.loads(encode(answer(1)))


@pytest.mark.parametrize("text", ["two\nlines\r\n", "\u2028\u0085", "nul \0", "half \ud83d", None])
def test_every_line_is_strict_json_in_utf_8_and_ends_with_its_only_newline(
    text: str | None,
) -> None:
    line = encode(answer(1, text=text, output_ids=array("I", [2**32 - 1])))

    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    line.decode()
    expected = text if text is None or "\ud83d" not in text else "half \ufffd"
    assert orjson.loads(line)["text"] == expected


def test_a_parsed_line_says_what_was_written() -> None:
    parsed = parse(encode(answer(3, replica=1, flags=("loop",), status="suspect")))

    assert parsed is not None
    assert (parsed.rid, parsed.key, parsed.index, parsed.replica) == (answer(3).rid, "a3", 3, 1)
    assert (parsed.status, parsed.flags, parsed.completion_tokens) == ("suspect", ("loop",), 3)
    assert (parsed.gen_id, parsed.prompt_sha256) == ("0123456789ab", "f" * 64)


@pytest.mark.parametrize(
    "line", [b"", b"\0" * 80, b"null\n", b"[1]\n", b'{"rid": 5}\n', b'{"rid":"x"}\n', b"{\n"]
)
def test_what_is_no_record_of_ours_is_not_parsed(line: bytes) -> None:
    assert parse(line) is None


@pytest.mark.parametrize("line", [b"", b"{}\n", b'{"rid":"abc', b'{"rid":"a\\"b"}\n', b"\0\0"])
def test_a_line_without_a_plain_request_id_has_none(line: bytes) -> None:
    assert line_rid(line) is None


def test_the_request_id_is_read_from_the_first_bytes() -> None:
    assert line_rid(encode(answer(7))) == answer(7).rid
    assert line_rid(b'{"rid":"abc","rest is torn \xff\\') == "abc"


def test_res_02_a_torn_end_is_told_from_the_whole_lines_before_it(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first, second, third = write_answers(path, 0, 1, 2)
    path.write_bytes(path.read_bytes()[:-20])

    tail = read_tail(path, len(first))

    (line,) = tail.lines
    assert (line.offset, line.length, line.rid) == (len(first), len(second), answer(1).rid)
    assert tail.torn_bytes == len(third) - 20


def test_nothing_behind_the_committed_offset_is_an_empty_tail(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = write_answers(path, 0, 1)

    tail = read_tail(path, sum(map(len, lines)))

    assert (tail.lines, tail.torn_bytes) == ((), 0)


def test_a_whole_line_that_lost_its_middle_is_not_adopted(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    (line,) = write_answers(path, 0)
    path.write_bytes(line[:60] + b"\0" * 40 + line[100:])

    (found,) = read_tail(path, 0).lines

    assert found.length == len(line)
    assert found.rid is None


def test_res_05_every_line_of_a_shard_is_found_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = write_answers(path, 4, 0, 4)
    path.write_bytes(path.read_bytes() + b"by hand\n" + b"torn")

    found = list(scan_lines(path))

    rids = [answer(4).rid, answer(0).rid, answer(4).rid, None, None]
    assert [line.rid for line in found] == rids
    assert [line.is_torn for line in found] == [False] * 4 + [True]
    whole = path.read_bytes()
    assert [whole[one.offset : one.offset + one.length] for one in found[:3]] == lines
    assert sum(line.length for line in found) == len(whole)


def test_an_endless_line_is_passed_over_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.files.tails.MAX_LINE_BYTES", 100)
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"x" * 250 + b"\n" + b"y" * 99 + b"\n" + b"z" * 101)

    found = list(scan_lines(path))

    assert [(one.offset, one.length, one.is_torn) for one in found] == [
        (0, 251, False),
        (251, 100, False),
        (351, 101, True),
    ]


def test_a_shard_is_rewritten_with_the_lines_that_stay(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = write_answers(path, 0, 1, 2)
    found = list(scan_lines(path))
    before = stat(path)

    offsets = rewrite(path, [(line.offset, line.length) for line in (found[2], found[0])])

    assert path.read_bytes() == lines[2] + lines[0]
    assert offsets == [0, len(lines[2])]
    after = stat(path)
    assert before is not None
    assert after is not None
    assert after.inode != before.inode
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.jsonl"]


def test_a_rewrite_that_meets_damage_leaves_the_shard_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = write_answers(path, 0, 1)

    with pytest.raises(StorageError, match="are not one line"):
        rewrite(path, [(0, len(lines[0])), (5, 10)])

    assert path.read_bytes() == b"".join(lines)
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.jsonl"]


def test_facts_of_a_file_that_is_not_there_are_none(tmp_path: Path) -> None:
    assert stat(tmp_path / "gone.jsonl") is None
    with pytest.raises(StorageError, match=r"cannot read .*gone\.jsonl"):
        read_tail(tmp_path / "gone.jsonl", 0)


@pytest.mark.parametrize(
    ("order", "is_new"), [("recovery-rewritten", False), ("recovery-renamed", True)]
)
def test_killed_in_a_rewrite_the_shard_is_the_old_or_the_new_one(
    tmp_path: Path, order: str, *, is_new: bool
) -> None:
    path = tmp_path / "s.jsonl"
    lines = write_answers(path, 0, 1)
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from app import seams\n"
        "from app.files.tails import rewrite\n"
        "seams.arm(sys.argv[2])\n"
        f"rewrite(Path(sys.argv[1]), [({len(lines[0])}, {len(lines[1])})])\n"
    )

    done = subprocess.run([sys.executable, "-c", program, str(path), order], check=False)

    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == (lines[1] if is_new else b"".join(lines))
    rewrite(path, [(0, len(path.read_bytes().splitlines(keepends=True)[0]))])
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.jsonl"]
