"""A process of its own with a limit on file sizes, so that writing fails as on a full disk.

Run as `python -m tests.worker.small_disk FOLDER PLOT`; the limit would hit the test runner too.
Owns the two plots of `test_full_disk`; a failed assertion is its exit code and its last words.
"""

import asyncio
import resource
import sys
from pathlib import Path

from app.events import SettleDelayed, Ticked
from app.simulator.server import SimulatorThread
from tests.stage import Stage, random_texts
from tests.waiting import Shift
from tests.worker.oracle import assert_true_answers

# More than the ledger ever takes (its log is folded in at 4 MB), less than all answers.
SMALL_BYTES = 6_000_000
N_ROWS = 90


def set_size_limit(n_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))


async def ticks(shift: Shift, n: int) -> None:
    seen = len(shift.heard(Ticked))
    await shift.until(lambda: len(shift.heard(Ticked)) >= seen + n, f"{n} more ticks")


async def until_full(stage: Stage, shift: Shift, simulator: SimulatorThread) -> None:
    """Work until the shard takes no more, and check that this is said and nothing more is sent."""
    await shift.until(lambda: shift.heard(SettleDelayed), "the full disk to be told")
    await shift.until(lambda: "responses" in stage.worker_row(shift.id).notice, "the notice")
    await ticks(shift, 2)  # a claim that was under way is still sent
    await shift.until(lambda: simulator.stats.in_flight == 0, "nothing in flight")
    sent = simulator.stats.generate_calls
    await ticks(shift, 5)
    assert simulator.stats.generate_calls == sent, "claims go on although the disk is full"
    assert sent < N_ROWS
    counts = stage.partition().counts
    assert counts.kept + counts.running == sent, counts
    assert counts.running > 0, "every answer could be written: the limit is too high"
    assert len(shift.heard(SettleDelayed)) == 1


async def space_is_freed(stage: Stage, simulator: SimulatorThread) -> None:
    async with stage.shift() as shift:
        await until_full(stage, shift, simulator)
        set_size_limit(resource.RLIM_INFINITY)
        await shift.until(lambda: stage.partition().is_over, "the end")
        assert stage.worker_row(shift.id).notice == ""
    assert simulator.stats.calls_total == N_ROWS, "an answer was made twice"


async def asked_to_leave(stage: Stage, simulator: SimulatorThread) -> None:
    async with stage.shift() as shift:
        await until_full(stage, shift, simulator)
        shift.worker.leave("paused")
        await shift.gone()
    held = stage.partition().tokens.held
    assert held > 0, "what could not be written was thrown away"
    stage.assert_consistent()
    set_size_limit(resource.RLIM_INFINITY)
    await stage.work()


PLOTS = {"freed": space_is_freed, "left": asked_to_leave}


async def main(folder: Path, plot: str) -> None:
    with SimulatorThread(port=0, instant=True, incremental=True) as simulator:
        stage = Stage(folder, simulator.url, concurrency=6)
        stage.fill(random_texts(N_ROWS, seed=9, mark="@@len=16000"))
        set_size_limit(SMALL_BYTES)
        await PLOTS[plot](stage, simulator)
        assert_true_answers(stage, simulator)
        stage.assert_consistent()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
