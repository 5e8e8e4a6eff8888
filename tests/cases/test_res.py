"""Cases res-01 and res-06: leave and resume, and an answer that comes too late."""

from pathlib import Path

from app.simulator.server import SimulatorThread
from tests.cases.settings import calls, stage_of


async def test_res_01_resume_by_counting_lines_after_out_of_order_completion(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """The worker leaves and another goes on; a killed one is tested with real processes."""
    simulator.script({"@@slow": ["hang", "ok"], "*": ["ok"]})
    rows = [f"a{n} @@slow" if n < 5 else f"a{n}" for n in range(10)]
    stage = stage_of(tmp_path, simulator, rows, concurrency=10)

    await stage.work(lambda view: view.counts.ok == 5)
    assert {key for key, state in stage.states().items() if state == "ok"} == {
        f"a{n}" for n in range(5, 10)
    }
    stage.assert_consistent()
    await stage.work()

    assert stage.partition().counts.ok == 10
    assert calls(simulator) == {f"a{n}": 2 if n < 5 else 1 for n in range(10)}
    stage.assert_consistent()


async def test_res_06_late_answer_of_a_first_try_arrives_after_the_second(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """Scaled: 12 s, 5 s and 1 s are 1.6, 0.5 and 0.1.

    The late answer has nobody to come to: its connection was closed with the timeout, and its
    request id is not that of the second try. So its tokens are never received, nor wasted.
    """
    simulator.script({"@@late": ["ok delay=1.6, ignores disconnect", "ok delay=0.1"]})
    stage = stage_of(tmp_path, simulator, ["a1 @@late"], request_timeout_s=0.5, max_attempts=2)

    async with stage.shift() as shift:
        await shift.until(lambda: stage.partition().counts.ok == 1, "the second answer")
        assert simulator.stats.in_flight == 1, "the first answer came before the second"
        await shift.until(lambda: simulator.stats.in_flight == 0, "the late answer")

    assert stage.states() == {"a1": "ok"}
    assert calls(simulator) == {"a1": 2}
    assert len(stage.lines()) == 1
    assert stage.partition().tokens.received == stage.partition().tokens.kept == 3
    stage.assert_consistent()
