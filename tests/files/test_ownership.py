"""Who owns a folder, whether it can be written, how much room there is, and on what it lies."""

import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from app.errors import ConflictError, StorageError
from app.files.ownership import claim_output, probe_file, probe_folder
from app.files.space import filesystem_kind, free_bytes, is_network_filesystem

NOBODY = 65_534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; the test's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        for inside in folder.iterdir():
            inside.chmod(0o777)


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Give up the rights of root for the test, where it has them."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_is_claimed_with_home_and_run(tmp_path: Path) -> None:
    output, home = tmp_path / "out", tmp_path / "home"

    claim_output(output, home=home, run_id=3, run_name="synth", partitions=["B2", "B1"])
    claim_output(output, home=home, run_id=3, run_name="synth", partitions=["B2", "B1"])

    assert orjson.loads((output / ".longwatch.json").read_bytes()) == {
        "home": str(home),
        "runs": {"3": {"name": "synth", "partitions": ["B1", "B2"]}},
    }


def test_another_home_is_refused_by_name(tmp_path: Path) -> None:
    output = tmp_path / "out"
    claim_output(output, home=tmp_path / "first", run_id=1, run_name="synth")
    before = (output / ".longwatch.json").read_bytes()

    with pytest.raises(ConflictError, match=rf'belongs to the home {tmp_path}/first .*"synth"'):
        claim_output(output, home=tmp_path / "second", run_id=1, run_name="mine")

    assert (output / ".longwatch.json").read_bytes() == before


def test_another_run_may_have_other_partitions_of_the_folder(tmp_path: Path) -> None:
    output, home = tmp_path / "out", tmp_path / "home"
    claim_output(output, home=home, run_id=1, run_name="one", partitions=["B1"])

    claim_output(output, home=home, run_id=2, run_name="two", partitions=["B2"])
    with pytest.raises(ConflictError, match='already holds B1 of run 1 "one"'):
        claim_output(output, home=home, run_id=3, run_name="three", partitions=["B1", "B3"])


def test_a_claim_that_cannot_be_read_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".longwatch.json").write_text('{"home": ')

    with pytest.raises(StorageError, match="does not say who owns the folder"):
        claim_output(tmp_path, home=tmp_path / "home", run_id=1, run_name="one")


def test_a_good_folder_has_no_problems_and_nothing_left_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "by the probe"

    assert probe_folder(folder) == []
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("ordinary_user")
def test_led_05_a_read_only_folder_is_named_with_the_missing_right(open_folder: Path) -> None:
    folder = open_folder / "out"
    folder.mkdir()
    folder.chmod(0o555)

    (problem,) = probe_folder(folder)

    assert problem.startswith(f"cannot create a file in {folder}: Permission denied; {folder} has")
    assert "mode 0555" in problem
    assert problem.endswith("lacks the right to write")


@pytest.mark.usefixtures("ordinary_user")
def test_led_05_a_folder_that_may_not_be_made_names_the_one_above(open_folder: Path) -> None:
    folder = open_folder / "closed"
    folder.mkdir()
    folder.chmod(0o555)

    (problem,) = probe_folder(folder / "out")

    assert f"cannot make the folder {folder / 'out'}" in problem
    assert f"{folder} has mode 0555" in problem


@pytest.mark.usefixtures("ordinary_user")
def test_led_05_a_file_without_the_right_to_write_is_named(open_folder: Path) -> None:
    path = open_folder / "ledger.db"
    path.touch()
    path.chmod(0o444)

    assert probe_file(path) == [
        f"{path} has mode 0444, the right to write is missing; chmod u+w it"
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_led_05_a_file_of_another_user_is_named(open_folder: Path) -> None:
    path = open_folder / "responses.jsonl"
    path.touch()
    os.seteuid(NOBODY)

    try:
        problems = probe_file(path)
    finally:
        os.seteuid(0)

    assert problems == [f"{path} belongs to the user root; move it away or run as that user"]


def test_a_file_in_place_of_the_folder_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.touch()

    assert probe_folder(path) == [f"cannot make the folder {path}: File exists"]


def test_a_file_that_is_no_file_is_a_problem(tmp_path: Path) -> None:
    assert probe_file(tmp_path) == [f"{tmp_path} is not a regular file; move it away"]
    assert probe_file(tmp_path / "not there") == []


def test_free_space_is_known_for_a_folder_and_not_for_nothing(tmp_path: Path) -> None:
    free = free_bytes(tmp_path, 5)

    assert free is not None
    assert 0 < free <= os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize
    assert free_bytes(tmp_path / "nowhere", 5) is None


def test_sto_03_a_question_that_hangs_costs_its_time_limit_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    asked: list[Path] = []
    real_statvfs = os.statvfs

    def hang(path: Path) -> os.statvfs_result:
        asked.append(path)
        released.wait(30)
        return real_statvfs(path)

    monkeypatch.setattr(os, "statvfs", hang)  # no mount here can be made to hang

    assert free_bytes(tmp_path, 0.05) is None
    assert free_bytes(tmp_path, 30) is None  # at once: the first question is still open
    assert asked == [tmp_path]
    released.set()
    for thread in threading.enumerate():
        if thread.name == "free-space":
            thread.join(30)
    assert free_bytes(tmp_path, 30) is not None


MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /data rw,relatime - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /data/local rw - xfs /dev/sdb1 rw
32 22 0:42 / /mnt/two\040words rw - fuse.sshfs me@host:/x rw
33 22 0:43 / /over rw - ext4 /dev/sdc1 rw
34 22 0:44 / /over rw - cifs //host/share rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me", "ext4"),
        ("/data/out", "nfs4"),
        ("/data/local/out", "xfs"),
        ("/database", "ext4"),
        ("/mnt/two words/x", "fuse.sshfs"),
        ("/over/x", "cifs"),
    ],
)
def test_a_path_lies_on_the_deepest_and_latest_mount(path: str, kind: str) -> None:
    assert filesystem_kind(Path(path), MOUNTS) == kind


def test_the_folders_of_this_machine_are_local(tmp_path: Path) -> None:
    assert is_network_filesystem(tmp_path) is None
