"""What a worker tells of itself with each tick, and what it knows when it begins."""

from pathlib import Path

from app.simulator.server import SimulatorThread
from tests.stage import Stage, random_texts


async def test_the_moment_of_the_last_token_is_told_and_goes_on(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    stage = Stage(tmp_path, simulator.url)
    stage.fill(random_texts(1, seed=1, mark="@@len=16000"))
    began_at = stage.clock.now()

    async with stage.shift() as shift:
        await shift.until(lambda: stage.worker_row(shift.id).last_token_at, "a first moment")
        first = stage.worker_row(shift.id).last_token_at
        assert first is not None
        assert began_at.replace(microsecond=0) <= first <= stage.clock.now()
        await shift.until(
            lambda: (stage.worker_row(shift.id).last_token_at or first) > first, "a later moment"
        )
        simulator.freeze()
        silent = stage.worker_row(shift.id).lease_expires_at
        await shift.until(
            lambda: (stage.worker_row(shift.id).lease_expires_at - silent).total_seconds() > 0.4,
            "ticks without tokens",
        )
        quiet = stage.worker_row(shift.id)
    assert quiet.last_token_at is not None
    assert (quiet.lease_expires_at - quiet.last_token_at).total_seconds() > 30.3
    stage.assert_consistent()


async def test_a_new_worker_reserves_by_the_lengths_that_its_predecessors_have_seen(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"@@hang": ["hang"], "*": ["ok with 100 output tokens"]})
    stage = Stage(tmp_path, simulator.url, concurrency=8, max_new_tokens=4_000)
    stage.fill([*random_texts(40, seed=1), *random_texts(8, seed=2, mark="@@hang")])
    await stage.work(lambda view: view.counts.ok == 40)

    async with stage.shift() as shift:
        await shift.until(lambda: stage.worker_row(shift.id).in_flight >= 1, "one in flight")
        view = stage.partition()

    assert 100 <= view.reserved_tokens <= 8 * 110
    stage.assert_consistent()
