"""Concurrency changed while answers run: up at once, down by letting them end."""

from itertools import accumulate
from pathlib import Path

import pytest

from app.events import Ticked
from app.simulator.server import SimulatorThread
from tests.stage import Stage, random_texts
from tests.waiting import Shift

RISE_BOUND_S = 2.0
"""How long the rise may take, or three times the first one: it is nearly twice as many requests."""


async def change(stage: Stage, shift: Shift, n: int) -> None:
    """Give the worker another share, as the service does, and wait for the tick that tells it."""
    seen = len(shift.heard(Ticked))
    stage.share(shift.id, n)
    shift.worker.hurry()
    await shift.until(lambda: len(shift.heard(Ticked)) > seen + 1, "the next tick")


def in_flight_when_sent(simulator: SimulatorThread, since: float) -> list[int]:
    """Return, for each request that came since then, how many were in flight with it."""
    log = simulator.stats.requests()
    moves = [(entry.received_at, 1) for entry in log]
    moves += [(entry.ended_at, -1) for entry in log if entry.ended_at is not None]
    moves.sort()
    levels = accumulate(step for _, step in moves)
    return [n for (at, step), n in zip(moves, levels, strict=True) if step == 1 and at > since]


@pytest.mark.slow
@pytest.mark.alone
async def test_concurrency_goes_from_150_to_20_to_300_without_a_killed_request(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["ok delay=random 1..2 (seed 7)"]})
    stage = Stage(tmp_path, simulator.url, concurrency=150)
    stage.fill(random_texts(1_000, seed=1))
    stats = simulator.stats

    began_at = stage.clock.monotonic()
    async with stage.shift() as shift:
        await shift.until(lambda: stats.in_flight == 150, "150 in flight")
        bound_s = max(RISE_BOUND_S, 3 * (stage.clock.monotonic() - began_at))
        await change(stage, shift, 20)
        lowered_at = stage.clock.monotonic()
        await shift.until(lambda: stats.in_flight < 20, "fewer than 20 in flight")
        sent = stats.generate_calls
        await shift.until(lambda: stats.generate_calls >= sent + 20, "work to go on")
        below = in_flight_when_sent(simulator, lowered_at)
        stage.share(shift.id, 300)
        shift.worker.hurry()
        await shift.until(lambda: stats.in_flight == 300, "300", within_s=bound_s)
        await shift.until(lambda: stage.partition().is_over, "the end")

    assert len(below) >= 20
    assert max(below) <= 20
    assert stats.max_in_flight == 300
    assert stats.disconnects == stats.aborts == 0
    assert stats.calls_total == stage.partition().counts.ok == 1_000
    stage.assert_consistent()
