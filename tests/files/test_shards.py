"""Appending: offsets, what a failed write or sync leaves, tokens, and death between the steps."""

import errno
import os
import resource
import signal
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import StorageError
from app.files.records import encode, line_rid
from app.files.shards import ShardWriter, read_line, shard_name
from app.files.space import storage_error
from app.files.tails import read_tail
from app.files.tokens import TokenFile, from_bytes, to_bytes
from tests.files.records_of import answer


@pytest.fixture
def file_size_limit() -> Iterator[int]:
    """Let every write beyond 1,000 bytes of a file fail, after writing what still fits."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_are_found_again_at_their_offsets(tmp_path: Path) -> None:
    shard = ShardWriter(tmp_path / "B1" / shard_name(1, 2, 3))
    lines = [encode(answer(number)) for number in range(3)]

    offsets = shard.append(lines[:1]) + shard.append(lines[1:])
    shard.sync()

    assert shard.path.name == "responses-1-2-3.jsonl"
    assert [
        read_line(shard.path, offset, len(line))
        for offset, line in zip(offsets, lines, strict=True)
    ] == lines
    assert shard.size_bytes == shard.path.stat().st_size == sum(map(len, lines))
    assert shard.inode == shard.path.stat().st_ino


def test_a_shard_that_is_there_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first = ShardWriter(path)
    first.append([b"one\n"])
    first.sync()
    first.close()

    offsets = ShardWriter(path).append([b"two\n"])

    assert offsets == [4]
    assert path.read_bytes() == b"one\ntwo\n"


def test_nothing_is_made_before_the_first_line(tmp_path: Path) -> None:
    ShardWriter(tmp_path / "B1" / "s.jsonl")

    assert list(tmp_path.iterdir()) == []


def test_a_write_that_does_not_fit_leaves_no_part_of_it(
    tmp_path: Path, file_size_limit: int
) -> None:
    shard = ShardWriter(tmp_path / "s.jsonl")
    shard.append([b"a" * 899 + b"\n"])

    with pytest.raises(StorageError, match=r"cannot write .*s\.jsonl: File too large"):
        shard.append([b"b" * 49 + b"\n", b"c" * 199 + b"\n"])

    assert shard.size_bytes == shard.path.stat().st_size == 900
    assert shard.append([b"d" * 49 + b"\n"]) == [900]


def test_sto_01_a_full_disk_is_said_with_path_and_free_space(tmp_path: Path) -> None:
    error = storage_error(tmp_path / "s.jsonl", "write", OSError(errno.ENOSPC, "No space left"))

    assert isinstance(error, StorageError)
    with pytest.raises(StorageError, match=r"s\.jsonl: No space left \([\d,]+ bytes free\)"):
        raise error


def test_after_a_failed_sync_the_lines_are_gone_and_can_be_appended_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = ShardWriter(tmp_path / "s.jsonl")
    shard.append([b"kept\n"])
    shard.sync()
    shard.append([b"lost\n"])

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:  # no disk here can be made to fail a sync
        patched.setattr(os, "fdatasync", fail)
        with pytest.raises(StorageError, match=r"cannot sync .*s\.jsonl: Input/output error"):
            shard.sync()

    assert shard.path.read_bytes() == b"kept\n"
    assert shard.append([b"again\n"]) == [5]
    shard.sync()
    assert shard.path.read_bytes() == b"kept\nagain\n"


def test_a_shard_removed_under_the_writer_is_noticed(tmp_path: Path) -> None:
    shard = ShardWriter(tmp_path / "s.jsonl")
    shard.append([b"one\n"])
    shard.path.unlink()

    with pytest.raises(StorageError, match="was removed while it was being written"):
        shard.append([b"two\n"])


def test_a_second_writer_is_noticed(tmp_path: Path) -> None:
    shard = ShardWriter(tmp_path / "s.jsonl")
    shard.append([b"one\n"])
    with shard.path.open("ab") as other:
        other.write(b"foreign\n")

    with pytest.raises(StorageError, match="something else writes to it"):
        shard.append([b"two\n"])


def test_lines_that_were_not_accepted_are_taken_back(tmp_path: Path) -> None:
    shard = ShardWriter(tmp_path / "s.jsonl")
    shard.append([b"one\n", b"two\n"])

    shard.cut(4)

    assert shard.path.read_bytes() == b"one\n"
    assert shard.append([b"three\n"]) == [4]


def test_a_cut_never_lengthens(tmp_path: Path) -> None:
    shard = ShardWriter(tmp_path / "s.jsonl")
    shard.append([b"one\n"])

    with pytest.raises(StorageError, match="holds 4 bytes, 9 were expected"):
        shard.cut(9)


@pytest.mark.parametrize(("offset", "length"), [(0, 3), (1, 8), (4, 5), (0, 0)])
def test_bytes_that_are_not_one_line_are_refused(tmp_path: Path, offset: int, length: int) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"one\ntwo\n")

    with pytest.raises(StorageError, match=r"s\.jsonl"):
        read_line(path, offset, length)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "B1").write_text("a file in the way")

    with pytest.raises(StorageError, match=r"cannot open .*B1/s\.jsonl"):
        ShardWriter(tmp_path / "B1" / "s.jsonl").append([b"one\n"])


def test_token_ids_come_back_by_offset_and_length(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    written = TokenFile(path)
    prompts = [array("I", [1, 2, 3]), array("I"), array("I", [2**32 - 1])]

    offsets = written.append(prompts)
    written.sync()

    assert offsets == [0, 3, 3]
    assert written.size_tokens == 4
    read = TokenFile(path)
    assert [read.read(at, len(ids)) for at, ids in zip(offsets, prompts, strict=True)] == prompts
    assert path.read_bytes() == bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 255, 255, 255, 255])


def test_tokens_that_the_ledger_does_not_know_of_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(b"\1\0\0\0\2\0\0\0\3\0")  # torn in the third id

    tokens = TokenFile(path)
    tokens.cut(1)

    assert tokens.append([array("I", [9])]) == [1]
    assert tokens.read(0, 2) == array("I", [1, 9])


def test_tokens_beyond_the_end_are_refused(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    tokens.append([array("I", [1, 2])])

    with pytest.raises(StorageError, match="ends 4 bytes before byte 12"):
        tokens.read(1, 2)


def test_ids_survive_packing() -> None:
    ids = array("I", range(0, 200_000, 7))

    assert from_bytes(to_bytes(ids)) == ids


@pytest.mark.parametrize(
    ("order", "whole_lines"),
    [
        ("shard-before-write:2", 1),
        ("shard-written:2", 2),
        ("shard-synced:2", 2),
        ("tokens-written", 0),
        ("tokens-synced", 0),
    ],
)
def test_killed_anywhere_the_file_holds_whole_ticks(
    tmp_path: Path, order: str, whole_lines: int
) -> None:
    path = tmp_path / "s.jsonl"
    program = (
        "import sys\n"
        "from array import array\n"
        "from pathlib import Path\n"
        "from app import seams\n"
        "from app.files.shards import ShardWriter\n"
        "from app.files.tokens import TokenFile\n"
        "from app.files.records import encode\n"
        "from tests.files.records_of import answer\n"
        "seams.arm(sys.argv[2])\n"
        "tokens = TokenFile(Path(sys.argv[1]).with_name('tokens'))\n"
        "tokens.append([array('I', [5, 6])])\n"
        "tokens.sync()\n"
        "shard = ShardWriter(Path(sys.argv[1]))\n"
        "for number in range(3):\n"
        "    shard.append([encode(answer(number))])\n"
        "    shard.sync()\n"
    )

    done = subprocess.run([sys.executable, "-c", program, str(path), order], check=False)

    assert done.returncode == -signal.SIGKILL
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    assert [line_rid(line) for line in lines] == [answer(n).rid for n in range(whole_lines)]
    assert TokenFile(tmp_path / "tokens").read(0, 2) == array("I", [5, 6])
    if lines:
        assert read_tail(path, 0).torn_bytes == 0
