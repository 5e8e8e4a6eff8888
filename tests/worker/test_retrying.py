"""A retry of a group while the run works on: each of its members once, and nobody else."""

from pathlib import Path

import pytest

from app.core.reasons import Choice, group_of
from app.core.states import SampleState
from app.ledger import runs
from app.retrying import retry_chosen
from app.simulator.server import SimulatorThread
from tests.stage import Stage
from tests.waiting import wait_until

N_TOO_LONG, N_REFUSED, N_FINE = 12, 3, 60


@pytest.mark.slow
async def test_a_group_is_retried_exactly_while_the_run_works(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    too_long = [f"long{n:03}" for n in range(N_TOO_LONG)]
    refused = [f"bad{n:03}" for n in range(N_REFUSED)]
    simulator.script(
        {
            **{
                f"@@{key}": [{"json": [400, {"error": {"message": f"{n} tokens, no room"}}]}, "ok"]
                for n, key in enumerate(too_long)
            },
            **{
                f"@@{key}": [{"json": [400, {"error": {"message": "bad regex"}}]}]
                for key in refused
            },
            "*": ["ok"],
        }
    )
    stage = Stage(tmp_path, simulator.url, concurrency=4)
    fine = [f"fine{n:03}" for n in range(N_FINE)]
    stage.fill_rows([f"{key} @@{key}" for key in [fine[0], *too_long, *refused, *fine[1:]]])
    n_failed = N_TOO_LONG + N_REFUSED

    async with stage.shift():
        await wait_until(lambda: stage.partition().counts.failed == n_failed, "the failures")
        run = runs.get_run(stage.ledger, stage.run_id)
        (reason,) = {row["reason"] for key, row in stage.rows().items() if key == too_long[0]}
        choice = Choice(group=group_of(SampleState.FAILED, reason))
        done = retry_chosen(stage.ledger, run, choice, who="anna", now=stage.clock.now())
        await wait_until(lambda: stage.partition().is_over, "the end of the work")

    assert done.by_partition == (("p", N_TOO_LONG),)
    states = stage.states()
    assert {states[key] for key in refused} == {"failed"}
    assert {states[key] for key in [*too_long, *fine]} == {"ok"}
    attempts = {key: row["attempt"] for key, row in stage.rows().items()}
    assert {attempts[key] for key in too_long} == {2}
    assert {attempts[key] for key in [*refused, *fine]} == {1}
    stage.assert_consistent()
