"""Files written whole: sealed answers, the manifest, symlinks, and death between the steps."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import StorageError
from app.files.sealed import LineSource, read_manifest, write_manifest, write_sealed

OLD, NEW = b'{"old":1}\n', b'{"new":1}\n{"new":2}\n'


def test_lines_of_many_shards_are_sealed_in_the_order_asked_for(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"s{number}.jsonl").write_bytes(b"first\n" + f"line {number}\n".encode())
    target = tmp_path / "responses.jsonl"
    wanted = [f"line {number}\n".encode() for number in reversed(range(100))]

    with LineSource() as source:
        facts = write_sealed(
            target,
            (
                source.read(tmp_path / f"s{number}.jsonl", 6, len(f"line {number}\n"))
                for number in reversed(range(100))
            ),
        )

    assert target.read_bytes() == b"".join(wanted)
    assert facts.n_lines == 100
    assert facts.size_bytes == target.stat().st_size
    assert facts.inode == target.stat().st_ino


def test_a_source_leaves_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"one\n")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a list of descriptors, not of files

    with LineSource() as source:
        assert source.read(path, 0, 4) == b"one\n"
        assert source.read(path, 0, 4) == b"one\n"

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as above


def test_a_shard_that_is_gone_is_named_and_the_target_stays(tmp_path: Path) -> None:
    target = tmp_path / "responses.jsonl"
    target.write_bytes(OLD)

    with LineSource() as source, pytest.raises(StorageError, match=r"gone\.jsonl"):
        write_sealed(target, (source.read(tmp_path / "gone.jsonl", 0, 4) for _ in range(1)))

    assert target.read_bytes() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["responses.jsonl"]


def test_a_line_without_its_end_is_not_sealed(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"line 2 for .* does not end with a newline"):
        write_sealed(tmp_path / "responses.jsonl", [b"one\n", b"two"])

    assert list(tmp_path.iterdir()) == []


def test_no_lines_are_an_empty_file(tmp_path: Path) -> None:
    target = tmp_path / "out" / "B1" / "responses.jsonl"  # no shard has made its folder

    facts = write_sealed(target, [])

    assert (facts.n_lines, facts.size_bytes) == (0, 0)
    assert target.read_bytes() == b""


def test_a_disk_that_fills_up_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    target = tmp_path / "responses.jsonl"
    target.write_bytes(OLD)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))

    try:
        with pytest.raises(StorageError, match=r"cannot replace .*responses\.jsonl"):
            write_sealed(target, [b"x" * 99 + b"\n"] * 30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert target.read_bytes() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["responses.jsonl"]


def test_sto_02_temporary_files_lie_beside_their_target_and_symlinks_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, real, link = tmp_path / "tmp", tmp_path / "disk", tmp_path / "out"
    elsewhere.mkdir()
    real.mkdir()
    link.symlink_to(real)
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    seen: list[str] = []

    def lines() -> list[bytes]:
        seen.extend(entry.name for entry in real.iterdir())
        return [NEW]

    write_sealed(link / "responses.jsonl", (line for step in [lines] for line in step()))

    assert link.is_symlink()
    assert (real / "responses.jsonl").read_bytes() == NEW
    assert seen == [".responses.jsonl.part"]
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("is_there", [True, False])
def test_sto_02_a_target_that_is_a_symlink_stays_one(tmp_path: Path, *, is_there: bool) -> None:
    real = tmp_path / "disk" / "answers.jsonl"
    real.parent.mkdir()
    if is_there:
        real.write_bytes(OLD)
    target = tmp_path / "responses.jsonl"
    target.symlink_to(real)

    facts = write_sealed(target, [NEW[:10]])

    assert target.is_symlink()
    assert real.read_bytes() == NEW[:10]
    assert facts.inode == real.stat().st_ino
    assert [entry.name for entry in real.parent.iterdir()] == ["answers.jsonl"]


@pytest.mark.parametrize(
    ("order", "is_new"),
    [
        ("seal-written", False),
        ("seal-synced", False),
        ("seal-renamed", True),
        ("manifest-written", False),
        ("manifest-renamed", True),
    ],
)
def test_killed_anywhere_the_target_is_the_old_or_the_new_file(
    tmp_path: Path, order: str, *, is_new: bool
) -> None:
    sealed, manifest = tmp_path / "responses.jsonl", tmp_path / "manifest.json"
    target = sealed if order.startswith("seal") else manifest
    write_sealed(sealed, [OLD])
    write_manifest(manifest, {"old": 1})
    before = target.read_bytes()
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from app import seams\n"
        "from app.files.sealed import write_manifest, write_sealed\n"
        "seams.arm(sys.argv[2])\n"
        "folder = Path(sys.argv[1])\n"
        "write_sealed(folder / 'responses.jsonl', [b'{\"new\":1}\\n', b'{\"new\":2}\\n'])\n"
        "write_manifest(folder / 'manifest.json', {'new': 1})\n"
    )

    done = subprocess.run([sys.executable, "-c", program, str(tmp_path), order], check=False)

    assert done.returncode == -signal.SIGKILL
    assert (target.read_bytes() != before) is is_new
    write_sealed(sealed, [NEW[:10], NEW[10:]])
    write_manifest(manifest, {"new": 1})
    assert sealed.read_bytes() == NEW
    assert read_manifest(manifest) == {"new": 1}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "manifest.json",
        "responses.jsonl",
    ]


def test_a_manifest_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"

    assert read_manifest(path) is None
    write_manifest(path, {"gen": {"0123456789ab": {"model": "m"}}, "n": 1})

    assert read_manifest(path) == {"gen": {"0123456789ab": {"model": "m"}}, "n": 1}


@pytest.mark.parametrize("content", [b"", b"{", b"[1]"])
def test_a_manifest_that_is_damaged_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)

    with pytest.raises(StorageError, match=r"manifest\.json is not"):
        read_manifest(path)
