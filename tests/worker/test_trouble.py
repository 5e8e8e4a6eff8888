"""A worker whose ledger or disk does not take what has come: nothing lost, nothing doubled."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.events import SettleDelayed
from app.simulator.server import SimulatorThread
from tests.stage import Stage, random_texts


@asynccontextmanager
async def locked(stage: Stage) -> AsyncIterator[None]:
    """Hold the ledger's write lock, as a backup or a stray shell does."""
    other = sqlite3.connect(stage.ledger.path, isolation_level=None, timeout=5)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.mark.parametrize("busy_timeout_ms", [5_000, 200], ids=["waits", "gives up and tries again"])
async def test_a_ledger_locked_by_another_connection_loses_and_doubles_nothing(
    simulator: SimulatorThread, tmp_path: Path, busy_timeout_ms: int
) -> None:
    simulator.script({"*": ["ok delay=0.05"]})
    stage = Stage(tmp_path, simulator.url, concurrency=8, busy_timeout_ms=busy_timeout_ms)
    stage.fill(random_texts(300, seed=1))

    async with stage.shift() as shift:
        await shift.until(lambda: stage.partition().counts.ok >= 40, "some answers")
        async with locked(stage):
            # All that was claimed ends meanwhile, and waits for the ledger.
            await shift.until(lambda: simulator.stats.in_flight == 0, "nothing in flight")
            if busy_timeout_ms < 5_000:
                await shift.until(lambda: shift.heard(SettleDelayed), "the trouble to be told")
        await shift.until(lambda: stage.partition().is_over, "the end")

    assert stage.partition().counts.ok == 300
    assert simulator.stats.calls_total == 300
    assert set(simulator.stats.calls.values()) == {1}
    stage.assert_consistent()


async def test_leaving_while_the_ledger_is_locked_waits_for_it(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["ok delay=0.05"]})
    stage = Stage(tmp_path, simulator.url, concurrency=8)
    stage.fill(random_texts(200, seed=2))

    async with stage.shift() as shift:
        await shift.until(lambda: stage.partition().counts.ok >= 40, "some answers")
        async with locked(stage):
            await shift.until(lambda: simulator.stats.in_flight == 0, "nothing in flight")
            # A claim waits for the lock by now. It must not be lost with the worker.
            shift.worker.leave("paused")
        await shift.gone()

    stage.assert_consistent()
    await stage.work()
    assert stage.partition().counts.ok == 200
    stage.assert_consistent()
