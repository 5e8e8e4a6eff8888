"""One service owns one home: refused at once while it lives, free when its last process is gone."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.errors import ConflictError
from app.ledger import lock
from app.ledger.lock import HomeLock, acquire, holder_of, living_service

ROOT = Path(__file__).parents[2]


async def taken(home: Path) -> HomeLock:
    return await acquire(home, SystemClock())


@contextmanager
def holder(home: Path, *how: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Let another process hold the lock; yield it, and the pids that it names."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ledger.lock_holder", str(home), *how],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        yield process, [int(word) for word in process.stdout.readline().split()]
        if process.stdin is not None:
            process.stdin.close()


async def test_a_free_home_is_taken_and_says_by_whom(tmp_path: Path) -> None:
    held = await taken(tmp_path)

    found = holder_of(tmp_path)

    assert found == held.holder
    assert held.holder.pid == os.getpid()
    assert living_service(tmp_path) == found
    held.release()
    assert living_service(tmp_path) is None


async def test_led_04_a_second_service_is_refused_at_once_and_told_who_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holder(tmp_path) as (_, (pid,)):
        monkeypatch.setattr(lock, "ORPHAN_WAIT_S", 3600.0)  # at once: not by waiting
        first = holder_of(tmp_path)
        with pytest.raises(ConflictError) as refusal:
            await asyncio.wait_for(taken(tmp_path), 20)

    assert first is not None
    message = refusal.value.message
    assert f"process {pid}" in message
    assert f"on {first.host}" in message
    assert f"since {first.since}" in message
    assert "http://127.0.0.1:8400" in message
    assert str(tmp_path) in message
    assert "--home" in refusal.value.hint


async def test_led_04_a_refused_service_leaves_the_lock_as_it_is(tmp_path: Path) -> None:
    held = await taken(tmp_path)
    held.announce("http://x")
    for _ in range(2):
        with pytest.raises(ConflictError, match=str(os.getpid())):
            await taken(tmp_path)

    assert living_service(tmp_path) == held.holder
    held.release()


async def test_led_04_after_kill_of_the_holder_the_next_start_works(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, (pid,)):
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        assert living_service(tmp_path) is None

        held = await asyncio.wait_for(taken(tmp_path), 20)

    assert held.holder.pid != pid
    found = holder_of(tmp_path)
    assert found is not None
    assert (found.pid, found.address) == (os.getpid(), "")
    held.release()


async def test_led_04_a_killed_service_that_nobody_reaped_is_not_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent may be busy: the zombie is no service, only its workers are waited for."""
    monkeypatch.setattr(lock, "ORPHAN_WAIT_S", 0.3)
    with holder(tmp_path, "child") as (process, (_, child)):
        try:
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            with pytest.raises(ConflictError, match="workers of a service that died"):
                await taken(tmp_path)
        finally:
            os.kill(child, signal.SIGKILL)


async def test_a_worker_that_inherited_the_lock_keeps_it_after_the_service_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "ORPHAN_WAIT_S", 0.3)
    with holder(tmp_path, "child") as (process, (_, child)):
        try:
            process.send_signal(signal.SIGKILL)
            process.wait(20)
            with pytest.raises(ConflictError, match="workers of a service that died"):
                await taken(tmp_path)
            assert living_service(tmp_path) is None
        finally:
            os.kill(child, signal.SIGKILL)


async def test_a_new_service_waits_until_the_orphans_have_left(tmp_path: Path) -> None:
    with holder(tmp_path, "child") as (process, (_, child)):
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        waiting = asyncio.create_task(taken(tmp_path))
        await asyncio.sleep(0)
        assert not waiting.done()
        os.kill(child, signal.SIGKILL)

        held = await asyncio.wait_for(waiting, 20)

    assert held.holder.pid == os.getpid()
    held.release()


@pytest.mark.parametrize("content", ["", "not json", '{"pid": 1}', "[]", "\x00" * 50])
async def test_a_file_without_a_living_lock_is_no_lock_whatever_it_says(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "service.lock").write_text(content)

    assert living_service(tmp_path) is None
    held = await asyncio.wait_for(taken(tmp_path), 20)

    assert holder_of(tmp_path) == held.holder
    held.release()


async def test_a_shorter_holder_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    held = await taken(tmp_path)
    held.announce("http://a-very-long-name.example:8400/with/a/path")
    held.announce("http://b")

    found = holder_of(tmp_path)

    assert found is not None
    assert found.address == "http://b"
    held.release()


async def test_only_the_owner_may_read_the_lock(tmp_path: Path) -> None:
    held = await taken(tmp_path)

    assert (tmp_path / "service.lock").stat().st_mode & 0o077 == 0
    held.release()
