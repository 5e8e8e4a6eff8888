"""Real prompts through the whole program against the simulator: every sample accounted for."""

from pathlib import Path

import orjson
import pytest

from app.simulator.answers import LengthModel
from app.simulator.server import SimulatorThread
from tests.process.accounts import assert_books_balance
from tests.process.real_input import write_real_prompts
from tests.process.run_process import RunProcess


@pytest.mark.slow
def test_humaneval_and_fixtures_from_file_to_sealed_output(tmp_path: Path) -> None:
    lengths = LengthModel(mean_tokens=150, cap_tokens=400)
    with SimulatorThread(lengths=lengths, time_factor=40) as simulator:
        run = RunProcess(tmp_path, simulator.url, max_new_tokens=400)
        counts = write_real_prompts(tmp_path / "prompts")
        try:
            run.start()
            assert run.wait() == 0, run.log_tail()
        finally:
            run.close()
        assert_books_balance(run)
        assert {view.name: view.counts.kept for view in run.partitions()} == counts
        assert sum(view.counts.total for view in run.partitions()) == sum(counts.values())
        for name, n in counts.items():
            content = (run.output / name / "responses.jsonl").read_bytes()
            lines = [orjson.loads(line) for line in content.splitlines()]
            assert [line["index"] for line in lines] == list(range(n))
            ids = [
                orjson.loads(line)["id"]
                for line in (tmp_path / "prompts" / f"{name}.jsonl").read_bytes().splitlines()
            ]
            assert [line["id"] for line in lines] == ids
        assert simulator.stats.generate_calls == sum(counts.values())
