"""A worker that can serve nobody says why and stops; it does not wait, and fails no sample."""

from pathlib import Path

import pytest

from app.events import ServerLost
from app.simulator.server import SimulatorThread
from tests.stage import Stage, random_texts
from tests.waiting import come_back, die


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_request_refused_for_everybody_halts(
    simulator: SimulatorThread, tmp_path: Path, status: int
) -> None:
    simulator.script({"*": [{"json": [status, {"error": {"message": "not for you"}}]}]})
    stage = Stage(tmp_path, simulator.url)
    stage.fill(random_texts(20, seed=1))

    async with stage.shift() as shift:
        await shift.gone()

    assert str(status) in shift.worker.halt_reason
    assert "not for you" in stage.worker_row(shift.id).exit_reason
    assert simulator.stats.generate_calls == 1
    assert stage.partition().counts.pending == 20
    assert {row["charged"] for row in stage.rows().values()} == {0}
    stage.assert_consistent()


async def test_a_server_that_wants_a_key_halts_and_names_the_setting(tmp_path: Path) -> None:
    with SimulatorThread(port=0, api_key="secret") as simulator:
        stage = Stage(tmp_path, simulator.url)
        stage.fill(random_texts(3, seed=1))

        async with stage.shift() as shift:
            await shift.gone()

        assert "LONGWATCH_API_KEY" in shift.worker.halt_reason
        assert simulator.stats.generate_calls == 0
        stage.assert_consistent()

        simulator.script({"*": ["ok"]})
        stage.plan_changes["api_key"] = "secret"
        await stage.work()
        assert stage.partition().counts.ok == 3
        stage.assert_consistent()


async def test_another_model_after_a_reconnect_halts_with_server_changed(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["ok delay=0.2"]})
    stage = Stage(tmp_path, simulator.url, concurrency=4)
    stage.fill(random_texts(60, seed=1))

    async with stage.shift() as shift:
        await shift.until(lambda: stage.partition().counts.ok >= 4, "some answers")
        await die(simulator)
        await shift.until(lambda: shift.heard(ServerLost), "the loss of the server")
        before = simulator.stats.generate_calls
        simulator.set(model_path="/models/other")
        await come_back(simulator)
        await shift.gone()

    changes = ", ".join(
        f"{name} /models/toy -> /models/other" for name in ("model_path", "tokenizer_path")
    )
    assert shift.worker.halt_reason == f"server changed: {simulator.url} {changes}"
    assert simulator.stats.generate_calls == before
    stage.assert_consistent()


async def test_another_model_behind_a_cut_connection_halts_too(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """A server that is started anew within the moment in which it is looked at."""
    simulator.script({"@@cut": ["cut mid_body"], "*": ["ok delay=0.1"]})
    stage = Stage(tmp_path, simulator.url, concurrency=1)
    stage.fill([*random_texts(10, seed=1), "last @@cut", *random_texts(10, seed=2)])

    async with stage.shift() as shift:
        await shift.until(lambda: stage.partition().counts.ok >= 2, "some answers")
        simulator.set(weight_version="other")
        await shift.gone()

    assert shift.worker.halt_reason.startswith("server changed: ")
    assert stage.partition().counts.ok == 10
    assert stage.rows()["row10"]["charged"] == 0
    stage.assert_consistent()


async def test_a_trial_that_is_cut_by_a_living_server_is_followed_by_another(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    no_ids = {"gen": {"output_ids": None}}
    simulator.script({"@@cut": ["cut mid_body"], "*": [no_ids]})
    stage = Stage(tmp_path, simulator.url, concurrency=8)
    stage.fill(["first @@cut", *random_texts(20, seed=1)])

    async with stage.shift() as shift:
        await shift.gone()

    assert "no output token ids" in shift.worker.halt_reason
    assert simulator.stats.generate_calls == 2
    stage.assert_consistent()
