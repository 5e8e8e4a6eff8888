"""Extending a run of real processes: a finished one is opened, and nothing is lost on the way.

What the server generated is its own count. A death of the service in the midst of the order leaves
what was moved so far; the same order does the rest.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.core.states import RunState
from app.seams import Seam
from app.simulator.answers import LengthModel, answer
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import encode_chat
from tests.process.accounts import (
    assert_answers_are_right,
    assert_books_balance,
    assert_exactly_once,
)
from tests.process.run_process import RunProcess, wait_for
from tests.process.serving import serving
from tests.stage import random_texts

SHORT, LONG = 64, 192
LENGTHS = LengthModel(mean_tokens=150, cap_tokens=600)
PARTITION = "B1_p"
PATH = f"/runs/test/partitions/{PARTITION}/extend"
TICK = {"LONGWATCH_TICK_S": "0.1"}


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(lengths=LENGTHS, time_factor=60, max_running=64) as running:
        yield running


def finished(
    folder: Path, simulator: SimulatorThread, n_truncated: int
) -> tuple[RunProcess, list[str]]:
    """Let a run end with exactly so many truncated answers, and a third as many whole ones."""
    run = RunProcess(folder, simulator.url, concurrency=32, max_new_tokens=SHORT, environment=TICK)
    texts: list[str] = []
    wanted = {True: n_truncated, False: n_truncated // 3}
    for text in random_texts(8 * n_truncated, seed=11):
        is_cut = len(whole(text, LONG)) > SHORT
        if wanted[is_cut]:
            wanted[is_cut] -= 1
            texts.append(text)
    assert not any(wanted.values())
    run.write_prompts(PARTITION, texts)
    run.start()
    assert run.wait() == 0, run.log_tail()
    assert_answers_are_right(assert_exactly_once(run, PARTITION, texts), texts, LENGTHS, SHORT)
    (view,) = run.partitions()
    assert view.counts.truncated == n_truncated
    return run, texts


def whole(text: str, limit: int) -> list[int]:
    return list(answer(encode_chat([{"role": "user", "content": text}]), LENGTHS, limit))


def new_tokens(texts: list[str]) -> int:
    """Return what is in the longer answers and was not in the short ones."""
    return sum(max(0, len(whole(text, LONG)) - SHORT) for text in texts)


def assert_extended(run: RunProcess, texts: list[str]) -> None:
    lines = assert_exactly_once(run, PARTITION, texts)
    assert_answers_are_right(lines, texts, LENGTHS, LONG)
    assert_books_balance(run)


def order(run: RunProcess) -> None:
    run.order("extend", "test", PARTITION, "--max-new-tokens", str(LONG))


@pytest.mark.slow
def test_200_truncated_answers_generate_only_what_is_new(
    tmp_path: Path, simulator: SimulatorThread
) -> None:
    run, texts = finished(tmp_path, simulator, 200)
    made = simulator.stats.generated_tokens
    before = run.partitions()[0].tokens
    try:
        with serving(run) as client:
            answered = client.post(PATH, json={"max_new_tokens": LONG})
            assert answered.status_code == 200, answered.text
            assert "200 truncated -> 200 pending again" in answered.json()["sentence"]
            wait_for(run.is_finished, "the run to finish again")
        assert_extended(run, texts)
        assert simulator.stats.generated_tokens - made == new_tokens(texts)
        after = run.partitions()[0].tokens
        assert after.wasted == before.wasted == 0
        assert after.kept - before.kept == new_tokens(texts)
    finally:
        run.close()


@pytest.mark.slow
def test_a_finished_run_goes_on_with_its_truncated_answers_when_it_is_started_again(
    tmp_path: Path, simulator: SimulatorThread
) -> None:
    run, texts = finished(tmp_path, simulator, 12)
    made = simulator.stats.generated_tokens
    try:
        order(run)
        view = run.run_view()
        assert view is not None
        assert view.state is RunState.RUNNING
        exported = run.order("export", "test", str(tmp_path / "copy"))
        assert f"{len(texts)} answers" in exported  # every old answer is still there
        run.start()
        assert run.wait() == 0, run.log_tail()
        assert_extended(run, texts)
        assert simulator.stats.generated_tokens - made == new_tokens(texts)
    finally:
        run.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seam", "pass_number"),
    [
        (Seam.EXTEND_LIMIT_COMMITTED, 1),
        (Seam.EXTEND_BEFORE_COMMIT, 1),
        (Seam.EXTEND_COMMITTED, 1),
        (Seam.EXTEND_BEFORE_COMMIT, 2),
        (Seam.EXTEND_COMMITTED, 2),
    ],
)
def test_a_death_in_the_midst_of_the_order_loses_and_doubles_nothing(
    tmp_path: Path, simulator: SimulatorThread, seam: Seam, pass_number: int
) -> None:
    run, texts = finished(tmp_path, simulator, 210)  # more than one batch
    made = simulator.stats.generated_tokens
    try:
        with serving(run, {"LONGWATCH_DIE_AT": f"{seam}:{pass_number}"}) as client:
            with pytest.raises(httpx.HTTPError):
                client.post(PATH, json={"max_new_tokens": LONG})
            assert run.wait() == -signal.SIGKILL
        wait_for(lambda: not run.worker_pids(), "orphans to leave")
        with serving(run) as client:
            # By then the first part may have ended, and been sealed: all of it goes on or is whole.
            answered = client.post(PATH, json={"max_new_tokens": LONG})
            assert answered.status_code in (200, 409), answered.text
            wait_for(run.is_finished, "the run to finish")
        assert_extended(run, texts)
        assert simulator.stats.generated_tokens - made <= new_tokens(texts) + 64 * len(texts)
        assert run.partitions()[0].counts.failed == 0
    finally:
        run.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "order_to_die",
    [
        "shard-synced:2",
        "settle-before-commit:3",
        "settle-committed:3",
        "claim-before-commit:2",
        "claim-committed:2",
        "seal-renamed:1",
        "seal-committed:1",
    ],
)
def test_a_death_while_answers_go_on_loses_and_doubles_nothing(
    tmp_path: Path, simulator: SimulatorThread, order_to_die: str
) -> None:
    run, texts = finished(tmp_path, simulator, 60)
    try:
        order(run)
        run.environment = {**TICK, "LONGWATCH_DIE_AT": order_to_die}
        run.start()
        code = run.wait()
        if order_to_die.startswith("seal"):
            assert code == -signal.SIGKILL, run.log_tail()
            run.environment = TICK
            run.start()
            code = run.wait()
        assert code == 0, run.log_tail()
        assert_extended(run, texts)
    finally:
        run.close()


@pytest.mark.slow
def test_a_killed_service_and_killed_workers_go_on_with_the_extension(
    tmp_path: Path, simulator: SimulatorThread
) -> None:
    run, texts = finished(tmp_path, simulator, 120)
    made = simulator.stats.generated_tokens
    try:
        order(run)
        for _ in range(3):
            run.start()
            had = simulator.stats.generated_tokens
            wait_for(
                lambda had=had: simulator.stats.generated_tokens > had + 500 or not run.is_alive(),  # type: ignore[misc]  # bound now
                "new tokens",
            )
            run.kill_workers()
            run.kill()
            wait_for(lambda: not run.worker_pids(), "workers to be gone")
        run.start()
        assert run.wait() == 0, run.log_tail()
        assert_extended(run, texts)
        assert simulator.stats.generated_tokens - made < 2 * new_tokens(texts)
    finally:
        run.close()
