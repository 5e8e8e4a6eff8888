"""Pause, stop, drain and grace: what runs is checkpointed, ended on the server, and continued."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.core.views import PartitionView
from app.events import Ticked
from app.ledger import workers
from app.simulator.server import SimulatorThread
from tests.stage import Stage, random_texts
from tests.waiting import wait_until
from tests.worker.oracle import assert_true_answers, twice_made_tokens

STOP_BOUND_S = 2.0  # design: a stop is complete within two seconds


@pytest.mark.slow
@pytest.mark.alone
async def test_a_pause_of_64_long_answers_frees_the_server_and_loses_nothing(
    tmp_path: Path,
) -> None:
    with SimulatorThread(
        port=0, incremental=True, time_factor=150, kv_tokens=1_000_000
    ) as simulator:
        stage = Stage(tmp_path, simulator.url, concurrency=64, max_new_tokens=8_000)
        stage.fill(random_texts(64, seed=1, mark="@@len=8000"))
        stats = simulator.stats

        async with stage.shift() as shift:
            await shift.until(lambda: stats.generated_tokens > 64 * 3_000, "3K tokens each")
            assert stats.running == 64
            shift.worker.leave("paused")
            await wait_until(
                lambda: stats.running == stats.in_flight == 0,
                "an idle server",
                within_s=STOP_BOUND_S,
            )
            await shift.gone()
        assert stage.partition().counts.pending == 64
        assert stage.partition().tokens.held > 64 * 2_500
        assert {row["charged"] for row in stage.rows().values()} == {0}
        stage.assert_consistent()
        await stage.work()

        assert_true_answers(stage, simulator)
        assert {len(line["segments"]) for line in stage.lines()} == {2}
        ticks = [event.gained_tokens for event in shift.heard(Ticked) if isinstance(event, Ticked)]
        assert twice_made_tokens(stage, simulator) <= 1.5 * max(ticks)
        stage.assert_consistent()


async def test_drain_finishes_what_runs_and_sends_nothing_new(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["ok delay=0.6"]})
    stage = Stage(tmp_path, simulator.url, concurrency=8)
    stage.fill(random_texts(40, seed=1))

    async with stage.shift() as shift:
        await shift.until(lambda: simulator.stats.in_flight == 8, "eight in flight")
        workers.set_desired(stage.ledger, shift.id, "drain")
        shift.worker.hurry()
        await shift.until(
            lambda: stage.worker_row(shift.id).state == "draining", "draining to be told"
        )
        sent = simulator.stats.generate_calls
        await shift.gone()

    assert shift.worker.exit_reason == "drained"
    assert simulator.stats.generate_calls == sent
    assert simulator.stats.disconnects == simulator.stats.aborts == 0
    assert stage.partition().counts.ok == sent
    stage.assert_consistent()


async def test_a_drain_that_is_taken_back_goes_on_to_the_end(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["ok delay=0.3"]})
    stage = Stage(tmp_path, simulator.url, concurrency=4)
    stage.fill(random_texts(16, seed=1))

    async with stage.shift() as shift:
        await shift.until(lambda: simulator.stats.in_flight == 4, "four in flight")
        workers.set_desired(stage.ledger, shift.id, "drain")
        shift.worker.hurry()
        await shift.until(
            lambda: stage.worker_row(shift.id).state == "draining", "draining to be told"
        )
        workers.set_desired(stage.ledger, shift.id, "work")
        shift.worker.hurry()
        await shift.until(lambda: stage.partition().counts.ok == 16, "all answers")

    stage.assert_consistent()


@pytest.mark.slow
@pytest.mark.alone
async def test_an_order_to_stop_does_the_same_as_a_signal(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["hang"]})
    stage = Stage(tmp_path, simulator.url, concurrency=8)
    stage.fill(random_texts(20, seed=1))

    async with stage.shift() as shift:
        await shift.until(lambda: simulator.stats.in_flight >= 1, "a request in flight")
        workers.set_desired(stage.ledger, shift.id, "stop")
        shift.worker.hurry()
        await shift.gone(within_s=STOP_BOUND_S)

    assert shift.worker.exit_reason == "ordered to stop"
    assert stage.partition().counts.pending == 20
    stage.assert_consistent()


async def test_answers_that_end_within_the_grace_time_are_kept(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["ok delay=0.5"]})
    stage = Stage(tmp_path, simulator.url, concurrency=8, plan_changes={"stop_grace_s": 20.0})
    stage.fill(random_texts(40, seed=1))

    async with stage.shift() as shift:
        await shift.until(lambda: simulator.stats.in_flight == 8, "eight in flight")
        shift.worker.leave("paused")
        sent = simulator.stats.generate_calls
        await shift.gone()

    assert simulator.stats.aborts == simulator.stats.disconnects == 0
    assert simulator.stats.generate_calls == sent
    assert stage.partition().counts.ok == sent
    stage.assert_consistent()


@pytest.mark.slow
@pytest.mark.alone
async def test_a_second_leave_skips_the_grace_time(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"@@slow": ["ok delay=60"], "*": ["ok"]})
    stage = Stage(tmp_path, simulator.url, concurrency=8, plan_changes={"stop_grace_s": 60.0})
    stage.fill(["first", *random_texts(8, seed=1, mark="@@slow")])

    async with stage.shift() as shift:
        await shift.until(lambda: simulator.stats.in_flight == 8, "eight in flight")
        shift.worker.leave("paused")
        seen = len(shift.heard(Ticked))
        await shift.until(lambda: len(shift.heard(Ticked)) >= seen + 3, "three ticks of grace")
        assert simulator.stats.in_flight == 8
        shift.worker.leave("paused again")
        await shift.gone(within_s=STOP_BOUND_S)

    assert shift.worker.exit_reason == "paused"
    counts = stage.partition().counts
    assert (counts.ok, counts.pending) == (1, 8)
    stage.assert_consistent()


def received(tokens: int) -> Callable[[PartitionView], bool]:
    return lambda view: view.tokens.received >= tokens or view.is_over


@pytest.mark.parametrize("incremental", [False, True], ids=["cumulative", "incremental"])
async def test_answers_paused_again_and_again_are_still_the_models(
    tmp_path: Path, incremental: bool
) -> None:
    with SimulatorThread(port=0, incremental=incremental, time_factor=30) as simulator:
        stage = Stage(tmp_path, simulator.url, concurrency=8, max_new_tokens=1_500)
        stage.fill(random_texts(12, seed=2, mark="@@mean=900"))
        for share in (1, 2, 3):
            await stage.work(received(share * 1_500))
            stage.assert_consistent()
        await stage.work()

        assert_true_answers(stage, simulator)
        assert max(len(line["segments"]) for line in stage.lines()) >= 3
        stage.assert_consistent()
