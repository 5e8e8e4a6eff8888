"""Cases net-01 to net-03 and net-06 to net-08: connections, limits of time, tries, concurrency."""

import asyncio
from pathlib import Path

import pytest

from app.simulator.server import SimulatorThread
from tests.cases.settings import calls, stage_of
from tests.stage import Stage
from tests.waiting import Shift


async def test_net_01_waiting_for_a_free_connection_counts_as_a_failure(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """Scaled: answers take 0.8 s, not 8."""
    simulator.script({"*": ["ok delay=0.8"]})
    stage = stage_of(tmp_path, simulator, [f"a{n}" for n in range(600)], concurrency=300)

    await stage.work()

    counts = stage.partition().counts
    assert (counts.ok, counts.failed) == (600, 0)
    assert simulator.stats.max_in_flight == 300
    assert simulator.stats.calls_total == 600
    assert {row["attempt"] for row in stage.rows().values()} == {1}
    stage.assert_consistent()


async def test_net_02_client_cpu_grows_with_the_square_of_open_connections(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """Scaled to 600 in flight; a client whose work grows with the square hangs at the bound.

    The share of a core and the added delay are measured in benchmarks, the page is the service's.
    """
    simulator.script({"*": ["ok delay=0.5"]})
    stage = stage_of(tmp_path, simulator, [f"a{n}" for n in range(1_800)], concurrency=600)

    async with asyncio.timeout(20):
        await stage.work()

    assert stage.partition().counts.ok == 1_800
    assert simulator.stats.max_in_flight >= 550
    assert simulator.stats.calls_total == 1_800
    stage.assert_consistent()


async def test_net_03_proxy_variables_send_local_traffic_to_a_proxy(
    simulator: SimulatorThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    monkeypatch.delenv("no_proxy", raising=False)
    simulator.script({"*": ["ok"]})
    stage = stage_of(tmp_path, simulator, ["a1", "a2"])

    await stage.work()

    assert stage.states() == {"a1": "ok", "a2": "ok"}
    stage.assert_consistent()


FASTER = 400


class HastyLoop(asyncio.SelectorEventLoop):
    """A loop whose clock runs 400 times as fast: every timeout of client and worker is due early.

    The worker's ticks wake it, so that timers are seen 40 of its seconds late at the most.
    """

    def time(self) -> float:
        return super().time() * FASTER


@pytest.mark.parametrize("request_timeout_s", [3_600.0, None])
def test_net_06_hidden_total_timeout_of_300_or_600_seconds(
    simulator: SimulatorThread, tmp_path: Path, request_timeout_s: float | None
) -> None:
    """The answer takes 1.75 s, which are 700 s to the client: any total of its own would end it."""
    simulator.script({"@@long": ["ok delay=1.75"]})
    stage = stage_of(tmp_path, simulator, ["a1 @@long"], request_timeout_s=request_timeout_s)

    with asyncio.Runner(loop_factory=HastyLoop) as runner:
        runner.run(_work_hastily(stage))

    assert stage.states() == {"a1": "ok"}
    assert calls(simulator) == {"a1": 1}
    stage.assert_consistent()


async def _work_hastily(stage: Stage) -> None:
    async with stage.shift() as shift:
        await shift.until(
            lambda: stage.partition().is_over, "the long answer", within_s=10 * FASTER
        )


def test_net_06_a_configured_total_applies(simulator: SimulatorThread, tmp_path: Path) -> None:
    simulator.script({"@@long": ["ok delay=1.75", "ok"]})
    stage = stage_of(tmp_path, simulator, ["a1 @@long"], request_timeout_s=300.0)

    with asyncio.Runner(loop_factory=HastyLoop) as runner:
        runner.run(_work_hastily(stage))

    assert calls(simulator) == {"a1": 2}
    assert stage.rows()["a1"]["charged"] == 1
    stage.assert_consistent()


async def test_net_07_retries_multiply_because_two_layers_retry(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script(
        {
            "@@500": [{"json": [500, {}]}],
            "@@408": [{"json": [408, {}]}],
            "@@cut": ["cut mid_body"],
            "@@hang": ["hang"],
        }
    )
    rows = ["a1 @@500", "a2 @@408", "a3 @@cut", "a4 @@hang"]
    stage = stage_of(tmp_path, simulator, rows, max_attempts=3, request_timeout_s=0.4)

    await stage.work()

    assert set(stage.states().values()) == {"failed"}
    assert calls(simulator) == {"a1": 3, "a2": 3, "a3": 3, "a4": 3}
    stage.assert_consistent()


async def lower(stage: Stage, shift: Shift, simulator: SimulatorThread, n: int) -> None:
    """Lower the concurrency; see that it is reached, and that work goes on below it."""
    stage.share(shift.id, n)
    shift.worker.hurry()
    stats = simulator.stats
    await shift.until(lambda: stats.in_flight <= n, f"{n} in flight at most", within_s=6)
    sent = stats.generate_calls
    await shift.until(lambda: stats.generate_calls >= sent + 3, "work to go on")
    assert stats.in_flight <= n


async def rise(stage: Stage, shift: Shift, simulator: SimulatorThread, n: int) -> None:
    stage.share(shift.id, n)
    shift.worker.hurry()
    await shift.until(lambda: simulator.stats.in_flight == n, f"{n} in flight", within_s=2)


@pytest.mark.slow
@pytest.mark.alone
async def test_net_08_lowering_concurrency_in_mid_run_hangs_or_is_ignored(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """Scaled: answers take 0.25 s, not 2; each change is made when the one before has worked."""
    simulator.script({"*": ["ok delay=0.25"]})
    stage = stage_of(tmp_path, simulator, [f"a{n}" for n in range(500)], concurrency=64)
    stats = simulator.stats

    async with stage.shift() as shift:
        await shift.until(lambda: stats.in_flight == 64, "64 in flight")
        await lower(stage, shift, simulator, 4)
        await rise(stage, shift, simulator, 32)
        await lower(stage, shift, simulator, 1)
        await rise(stage, shift, simulator, 64)
        await shift.until(lambda: stage.partition().is_over, "the end")

    assert stage.partition().counts.ok == stats.calls_total == 500
    assert stats.max_in_flight == 64
    assert stats.disconnects == stats.aborts == 0
    stage.assert_consistent()
