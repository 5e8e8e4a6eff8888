"""Cases sto-01 to sto-03 with real processes: a full disk, other file systems, slow syncs."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.core.conditions import ConditionKind
from app.simulator.server import SimulatorThread
from tests.process import slow_storage
from tests.process.accounts import assert_books_balance
from tests.process.case_run import PARTITION, SHORT_TICK, CaseRun
from tests.process.run_process import wait_for


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """Put a small file system there; skips where that is not ours to do."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    try:
        mounted = subprocess.run(command, check=False, capture_output=True, timeout=10)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if mounted.returncode:
        pytest.skip("only root may mount; tests/worker/test_full_disk.py limits file sizes instead")
    try:
        yield
    finally:
        _run_as_root("umount", "--lazy", str(path))


def _run_as_root(*words: str) -> None:
    subprocess.run(words, check=True, timeout=10)


def remarks(run: CaseRun) -> str:
    value = run.figures()
    return str([value["conditions"], [one["remarks"] for one in value["partitions"]]])


def test_sto_01_a_full_disk_under_the_output(
    run: CaseRun, simulator: SimulatorThread, tmp_path: Path
) -> None:
    """By design nobody need resume: the work goes on by itself as soon as the disk takes it."""
    rows = [f"a{n}" for n in range(300)]
    simulator.script({"*": ["ok with 250 output tokens, delay=0.02"]})
    run.environment = {**SHORT_TICK, "LONGWATCH_DISK_STOP_BYTES": "0"}
    run.write_rows(rows)
    try:
        with small_disk(run.output, "256k"):
            run.start()
            wait_for(lambda: "cannot write" in run.log() if run.is_open() else False, "it is full")
            assert "has only" in run.log_tail(), "no warning came before the disk was full"
            wait_for(lambda: simulator.stats.in_flight == 0, "nothing in flight")
            wait_for(lambda: "bytes free" in remarks(run), "the worker's words in the figures")
            told = remarks(run)
            assert str(run.output) in told
            assert ConditionKind.DISK_LOW in told
            done = {key for key, state in run.states().items() if state == "ok"}
            assert {line["id"] for line in run.lines()} == done
            assert len(done) < 300

            _run_as_root("mount", "-o", "remount,size=8m", str(run.output))

            assert run.wait(30) == 0, run.log_tail()
            run.assert_whole(rows)
            assert simulator.stats.calls_total == 300
            assert_books_balance(run)
    finally:
        run.close()


@pytest.mark.slow
def test_sto_02_temporary_files_lie_beside_their_target_and_symlinks_stay(
    run: CaseRun, simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["ok"]})
    real, elsewhere = tmp_path / "disk", tmp_path / "partition"
    real.mkdir()
    elsewhere.mkdir()
    run.output.symlink_to(real)
    (real / PARTITION).symlink_to(elsewhere)
    shared_memory = Path("/dev/shm")  # noqa: S108 - another file system, and a folder of our own in it
    with TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None) as temporary:
        run.environment = {**SHORT_TICK, "TMPDIR": temporary}
        run.write_rows(["a1", "a2"])

        assert run.to_the_end() == 0, run.log_tail()

        assert list(Path(temporary).iterdir()) == []
    assert run.output.is_symlink()
    assert (real / PARTITION).is_symlink()
    assert (elsewhere / "responses.jsonl").is_file()
    run.assert_whole(["a1", "a2"])


@pytest.mark.slow
@pytest.mark.alone
def test_sto_03_a_slow_sync_slows_rows_and_nothing_else(
    run: CaseRun, simulator: SimulatorThread, tmp_path: Path
) -> None:
    """Scaled: a sync takes 3 s while storage is slow, answers 0.1 s, a request at most 1 s."""
    rows = [f"a{n}" for n in range(60)]
    slow = tmp_path / "slow"
    slow.mkdir()
    simulator.script({"*": ["ok delay=0.1"]})
    run.environment = {
        **SHORT_TICK,
        "LD_PRELOAD": str(slow_storage.build(tmp_path)),
        "SLOW_STORAGE": str(slow),
    }
    run.run_lines = "request_timeout_s = 1"
    run.concurrency = 4
    run.write_spec()
    run.write_rows(rows)
    run.start()
    run.wait_kept(4)

    (slow / "statvfs").touch()
    (slow / "sync").touch()
    began_at = time.monotonic()
    told = ""
    while time.monotonic() < began_at + 2 * slow_storage.SYNC_S:
        run.figures(timeout_s=1.0)
        told += remarks(run)
        time.sleep(0.1)
    assert not (slow / "statvfs").exists(), "nobody asked for the free space"
    assert "storage slow" in told
    # what waits for the disk holds back what is sent
    assert simulator.stats.calls_total - run.kept() < len(rows)
    (slow / "sync").unlink()

    assert run.wait(30) == 0, run.log_tail()
    run.assert_whole(rows)
    assert simulator.stats.calls_total == len(rows)
    assert_books_balance(run)
