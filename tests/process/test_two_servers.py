"""A run that names several servers uses them all, and goes on with what is left of them."""

from pathlib import Path

import pytest

from app.simulator.answers import LengthModel
from app.simulator.server import SimulatorThread
from tests.process.accounts import (
    assert_answers_are_right,
    assert_books_balance,
    assert_exactly_once,
)
from tests.process.run_process import RunProcess, wait_for
from tests.stage import random_texts

LENGTHS = LengthModel(mean_tokens=400, cap_tokens=1_000)
CAP = 1_000


@pytest.mark.slow
def test_two_servers_share_the_work_and_one_carries_on_alone(tmp_path: Path) -> None:
    texts = random_texts(80, seed=2)
    with (
        SimulatorThread(lengths=LENGTHS, time_factor=20) as first,
        SimulatorThread(lengths=LENGTHS, time_factor=20) as second,
    ):
        run = RunProcess(
            tmp_path, f'{first.url}", "{second.url}', concurrency=9, max_new_tokens=CAP
        )
        run.write_prompts("B1_p", texts)
        try:
            run.start()
            wait_for(lambda: first.stats.in_flight and second.stats.in_flight, "both at work")
            wait_for(lambda: run.kept() >= 20, "twenty answers")
            second.stop(hard=True)
            assert run.wait() == 0, run.log_tail()
        finally:
            run.close()
        lines = assert_exactly_once(run, "B1_p", texts)
        assert_answers_are_right(lines, texts, LENGTHS, CAP)
        assert_books_balance(run)
        (partition,) = run.partitions()
        assert partition.tokens.wasted == 0
        assert (first.stats.max_in_flight, second.stats.max_in_flight) == (5, 4)
        served = {segment["server"] for line in lines for segment in line["segments"]}  # type: ignore[attr-defined]  # JSON
        assert served == {first.url, second.url}
