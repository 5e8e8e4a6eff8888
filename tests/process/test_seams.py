"""A death at every seam, one after the other: each time the run ends whole when started again.

`LONGWATCH_DIE_AT` kills the process that first passes the seam: the service, or its first worker.
A seam that no process passed is a failure too: it would test nothing. Some run behind
script/test only.
"""

import signal
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from app.seams import Seam
from app.simulator.answers import LengthModel
from app.simulator.server import SimulatorThread
from tests.process.accounts import (
    assert_answers_are_right,
    assert_books_balance,
    assert_each_measured_once,
    assert_exactly_once,
)
from tests.process.run_process import RunProcess, wait_for
from tests.stage import random_texts

LENGTHS = LengthModel(mean_tokens=60, cap_tokens=400)
CAP = 400
N_SAMPLES = 24
# Seams that only a repair passes: they need an earlier death, or a file that is not as recorded.
_ON_RECOVERY = {
    Seam.SHARD_CUT,
    Seam.RECOVERY_REWRITTEN,
    Seam.RECOVERY_RENAMED,
    Seam.RECOVERY_COMMITTED,
}
# Passed only by an order to extend: tests/process/test_extending.py.
_ON_EXTENDING = {
    Seam.EXTEND_LIMIT_COMMITTED,
    Seam.EXTEND_BEFORE_COMMIT,
    Seam.EXTEND_COMMITTED,
}
# Passed only by a conversation whose earlier turn has no whole answer: test_turns.py.
_ON_TURNS = {Seam.TURNS_REJECTED}
# Passed only by an order to adopt: tests/process/test_adopting.py.
_ON_ADOPTING = {Seam.ADOPT_BEFORE_COMMIT, Seam.ADOPT_COMMITTED}
_ELSEWHERE = _ON_RECOVERY | _ON_EXTENDING | _ON_TURNS | _ON_ADOPTING
_IN_WORKER = {
    Seam.SHARD_BEFORE_WRITE,
    Seam.SHARD_WRITTEN,
    Seam.SHARD_SYNCED,
    Seam.SETTLE_BEFORE_COMMIT,
    Seam.SETTLE_COMMITTED,
    Seam.CLAIM_BEFORE_COMMIT,
    Seam.CLAIM_COMMITTED,
}
# Of the seams of one kind of write one at most stands for the others in script/test.
_BEHIND = {
    Seam.INTAKE_SCANNED,
    Seam.INTAKE_BATCH_COMMITTED,
    Seam.TOKENS_WRITTEN,
    Seam.TOKENS_SYNCED,
    Seam.TOKENS_COMMITTED,
    Seam.SEAL_WRITTEN,
    Seam.SEAL_SYNCED,
    Seam.SEAL_SHARDS_REMOVED,
    Seam.MANIFEST_WRITTEN,
    Seam.MANIFEST_RENAMED,
    Seam.SHARD_BEFORE_WRITE,
    Seam.SHARD_WRITTEN,
    Seam.SETTLE_BEFORE_COMMIT,
    Seam.SEAL_COMMITTED,
    Seam.CLAIM_BEFORE_COMMIT,
    Seam.CLAIM_COMMITTED,
}
_SECOND_PASS = {Seam.SHARD_SYNCED, Seam.SETTLE_COMMITTED, Seam.CLAIM_COMMITTED}


def _run(folder: Path, url: str, order: str | None = None) -> RunProcess:
    environment = {"LONGWATCH_TICK_S": "0.1"} | ({"LONGWATCH_DIE_AT": order} if order else {})
    return RunProcess(folder, url, concurrency=4, max_new_tokens=CAP, environment=environment)


def _assert_whole(run: RunProcess, texts: list[str]) -> None:
    lines = assert_exactly_once(run, "B1_p", texts)
    assert_answers_are_right(lines, texts, LENGTHS, CAP)
    assert_books_balance(run)
    assert_each_measured_once(run)


def _worker_deaths(run: RunProcess) -> list[str]:
    with run.ledger() as ledger, ledger.read() as connection:
        rows = connection.exec_driver_sql("SELECT exit_reason FROM worker").scalars().all()
    return [str(reason) for reason in rows if "SIGKILL" in str(reason)]


def _each(seams: set[Seam]) -> list[ParameterSet]:
    return [
        pytest.param(seam, marks=pytest.mark.slow if seam in _BEHIND else ())
        for seam in sorted(seams)
    ]


@pytest.mark.parametrize("seam", _each(set(Seam) - _ELSEWHERE))
def test_a_death_at_a_seam_loses_and_doubles_nothing(tmp_path: Path, seam: Seam) -> None:
    texts = random_texts(N_SAMPLES, seed=3)
    with SimulatorThread(lengths=LENGTHS, time_factor=40, max_running=4) as simulator:
        order = f"{seam}:{2 if seam in _SECOND_PASS else 1}"
        run = _run(tmp_path, simulator.url, order)
        run.write_prompts("B1_p", texts)
        try:
            run.start()
            code = run.wait()
            if seam in _IN_WORKER:
                assert code == 0, run.log_tail()
                assert len(_worker_deaths(run)) == 1
            else:
                assert code == -signal.SIGKILL, f"nobody passed {seam}: {run.log_tail()}"
                run.environment = {"LONGWATCH_TICK_S": "0.1"}
                run.start()
                assert run.wait() == 0, run.log_tail()
            _assert_whole(run, texts)
        finally:
            run.close()


@pytest.mark.parametrize("seam", sorted(_ON_RECOVERY))
@pytest.mark.slow
def test_a_death_in_the_midst_of_a_repair(tmp_path: Path, seam: Seam) -> None:
    texts = random_texts(N_SAMPLES, seed=5)
    with SimulatorThread(lengths=LENGTHS, time_factor=40, max_running=4) as simulator:
        run = _run(tmp_path, simulator.url)
        run.write_prompts("B1_p", texts)
        try:
            run.start()
            wait_for(lambda: run.kept() >= 5, "five answers")
            run.kill()
            wait_for(lambda: not run.worker_pids(), "orphans to leave")
            _damage(run, seam)
            run.environment = {"LONGWATCH_TICK_S": "0.1", "LONGWATCH_DIE_AT": str(seam)}
            run.start()
            assert run.wait() == -signal.SIGKILL, f"nobody passed {seam}: {run.log_tail()}"
            run.environment = {"LONGWATCH_TICK_S": "0.1"}
            run.start()
            assert run.wait() == 0, run.log_tail()
            _assert_whole(run, texts)
        finally:
            run.close()


def _damage(run: RunProcess, seam: Seam) -> None:
    """Make the shard something that recovery has to repair in the way of this seam."""
    (shard,) = (run.output / "B1_p").glob("responses-*.jsonl")
    content = shard.read_bytes()
    first = content.split(b"\n")[0] + b"\n"
    if seam is Seam.SHARD_CUT:
        # As if the worker had died at once: its row is alive, a torn line stands in the tail.
        with run.ledger() as ledger, ledger.write() as connection:
            connection.exec_driver_sql("UPDATE worker SET state = 'working'")
        shard.write_bytes(content + first[: len(first) // 2])
    else:
        shard.write_bytes(content + first)  # a doubled line: compared whole, and rewritten
