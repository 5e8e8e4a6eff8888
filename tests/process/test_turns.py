"""Runs that ask turn by turn, as real processes: killed, cut, failed, extended, then whole."""

import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from app.core.states import SampleState
from app.core.turns import turn_key
from app.simulator.answers import LengthModel
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import END_ID, decode
from tests.process.accounts import assert_books_balance
from tests.process.conversations import (
    PARTITION,
    assert_asked_on_what_is_kept,
    rows_of,
    sealed,
    write_conversations,
)
from tests.process.run_process import RunProcess, wait_for

LENGTHS = LengthModel(mean_tokens=40, cap_tokens=300)
CAP = 300
TICK = {"LONGWATCH_TICK_S": "0.1"}
WORDS = ("tide", "harbour", "lantern", "copper", "meadow", "violin", "winter", "engine")


def conversations(n: int, seed: int, n_turns: int = 3) -> list[list[str]]:
    random = Random(seed)
    return [
        [" ".join(random.choices(WORDS, k=6)) for _ in range(random.randint(1, n_turns))]
        for _ in range(n)
    ]


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(lengths=LENGTHS, time_factor=60, max_running=64) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, simulator: SimulatorThread) -> Iterator[RunProcess]:
    run = RunProcess(
        tmp_path, simulator.url, concurrency=6, max_new_tokens=CAP, environment=dict(TICK)
    )
    yield run
    run.close()


def _second_turns(run: RunProcess) -> int:
    """Return how many first turns are answered and followed by a second one in flight."""
    return sum(each.counts.running for each in run.partitions() if each.counts.ok == len(WORDS[:4]))


def n_turns(asked: list[list[str]]) -> int:
    return sum(map(len, asked))


@pytest.mark.slow
def test_every_turn_is_asked_on_the_generated_history(run: RunProcess) -> None:
    asked = conversations(20, seed=1)
    write_conversations(run, asked)

    run.start()
    assert run.wait() == 0, run.log_tail()

    assert len(sealed(run)) == n_turns(asked)
    assert_asked_on_what_is_kept(run, asked, LENGTHS, CAP)
    assert_books_balance(run)
    run.order("merge", "1", "--out", str(run.folder / "merged"))
    merged = {each["id"]: each for each in _records(run.folder / "merged")}
    assert len(merged) == n_turns(asked)
    for line in sealed(run):
        record = merged[f"{PARTITION}/{line['id']}"]
        prompt, answer = record["input_ids"][: record["prompt_len"]], line["output_ids"]
        assert record["input_ids"] == [*prompt, *answer]
        assert record["primary_id"] == f"{PARTITION}/c{line['index']}"
        for turn in range(1, line.get("turn", 1)):
            key = turn_key(f"c{line['index']}", turn)
            before = merged[f"{PARTITION}/{key}"]
            said = [each for each in before["input_ids"][before["prompt_len"] :] if each != END_ID]
            assert decode(said) in decode(prompt)


def _records(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "data").glob("train-*.jsonl"))
    return [orjson.loads(line) for path in paths for line in path.read_bytes().splitlines()]


@pytest.mark.slow
def test_each_replica_is_a_conversation_of_its_own(run: RunProcess) -> None:
    asked = conversations(6, seed=2)
    write_conversations(run, asked)
    run.spec_lines = "[defaults]\nsamples_per_prompt = 2"
    run.write_spec()

    run.start()
    assert run.wait() == 0, run.log_tail()

    assert len(sealed(run)) == 2 * n_turns(asked)
    assert_asked_on_what_is_kept(run, asked, LENGTHS, CAP, replicas=2)
    assert_books_balance(run)


@pytest.mark.slow
@pytest.mark.parametrize(
    "order_to_die",
    [
        "tokens-written:2",  # an answer is settled, the turn behind it is not asked yet
        "tokens-synced:2",
        "tokens-committed:2",
        "tokens-committed:3",
        "turns-rejected:1",
        "shard-synced:4",
        "settle-before-commit:8",
        "settle-committed:8",
        "claim-committed:4",
        "seal-renamed:1",
    ],
)
def test_a_death_at_a_seam_loses_and_doubles_no_turn(run: RunProcess, order_to_die: str) -> None:
    asked = [*conversations(12, seed=3), ["too long @@len=900", "never asked", "nor this"]]
    write_conversations(run, asked)
    run.environment = {**TICK, "LONGWATCH_DIE_AT": order_to_die}

    run.start()
    code = run.wait()
    if not order_to_die.startswith(("shard", "settle", "claim")):
        assert code == -signal.SIGKILL, run.log_tail()
        wait_for(lambda: not run.worker_pids(), "orphans to leave")
        run.environment = dict(TICK)
        run.start()
        code = run.wait()

    assert code == 0, run.log_tail()
    assert len(sealed(run)) == n_turns(asked) - 2
    assert_asked_on_what_is_kept(run, asked, LENGTHS, CAP)
    assert_books_balance(run)


@pytest.mark.slow
def test_service_and_workers_killed_again_and_again_leave_whole_conversations(
    run: RunProcess, simulator: SimulatorThread
) -> None:
    asked = conversations(30, seed=4, n_turns=4)
    write_conversations(run, asked)

    for n in (12, 30, 45):
        run.start()
        wait_for(lambda n=n: run.kept() >= n or not run.is_alive(), f"{n} answers")  # type: ignore[misc]  # bound now
        run.kill()
        run.kill_workers()
        wait_for(lambda: not run.worker_pids(), "workers to be gone")
    run.start()
    assert run.wait() == 0, run.log_tail()

    assert len(sealed(run)) == n_turns(asked)
    assert_asked_on_what_is_kept(run, asked, LENGTHS, CAP)
    assert_books_balance(run)


@pytest.mark.slow
def test_behind_a_cut_turn_the_rest_is_rejected_and_asked_once_it_was_extended(
    run: RunProcess,
) -> None:
    asked = [["one @@len=400", "two @@len=30", "three"], ["whole @@len=20", "and @@len=20"]]
    write_conversations(run, asked)

    run.start()
    assert run.wait() == 0, run.log_tail()

    rows = rows_of(run)
    assert {key: str(row["state"]) for key, row in rows.items()} == {
        "c0": "truncated",
        "c0#turn2": "rejected",
        "c0#turn3": "rejected",
        "c1": "ok",
        "c1#turn2": "ok",
    }
    assert {rows[f"c0#turn{n}"]["reason"] for n in (2, 3)} == {"turn 1 was cut at its limit"}
    run.order("extend", "test", PARTITION, "--max-new-tokens", "500")
    (view,) = run.partitions()
    assert (view.counts.pending, view.counts.rejected) == (3, 0)
    run.start()
    assert run.wait() == 0, run.log_tail()
    assert len(sealed(run)) == n_turns(asked)
    assert_asked_on_what_is_kept(run, asked, LENGTHS, 500)
    assert_books_balance(run)


@pytest.mark.slow
def test_behind_a_failed_turn_the_rest_is_rejected_and_asked_once_it_was_retried(
    run: RunProcess, simulator: SimulatorThread
) -> None:
    refusal = {"json": [400, {"error": {"message": "not today"}}]}
    simulator.script({"@@refused": [refusal], "*": ["model"]})
    asked = [["one @@refused", "two", "three"], ["four", "five"]]
    write_conversations(run, asked)

    run.start()
    assert run.wait() == 2, run.log_tail()

    rows = rows_of(run)
    assert str(rows["c0"]["state"]) == "failed"
    assert {str(rows[f"c0#turn{n}"]["state"]) for n in (2, 3)} == {"rejected"}
    assert rows["c0#turn3"]["reason"].startswith("turn 1 failed: the server answered 400")
    simulator.script({"*": ["model"]})
    run.order("retry", "test")
    assert {str(row["state"]) for row in rows_of(run).values()} == {"ok", "pending"}
    run.start()
    assert run.wait() == 0, run.log_tail()
    assert len(sealed(run)) == n_turns(asked)
    assert_asked_on_what_is_kept(run, asked, LENGTHS, CAP)
    assert_books_balance(run)


@pytest.mark.slow
def test_a_budget_ends_a_run_whose_turns_still_wait(run: RunProcess) -> None:
    asked = [["go on @@len=100", "and on", "and on"] for _ in range(10)]
    write_conversations(run, asked)
    run.spec_lines = f'[partition.{PARTITION}]\nclass = "short"\ntoken_budget = 1200'
    run.write_spec()

    run.start()
    assert run.wait() == 0, run.log_tail()

    (view,) = run.partitions()
    assert view.counts.pending > 0
    assert view.tokens.kept >= 900
    assert len({str(row["state"]) for row in rows_of(run).values()} - {"ok", "pending"}) == 0
    assert_asked_on_what_is_kept(run, asked, LENGTHS, CAP)
    assert_books_balance(run)


@pytest.mark.slow
def test_a_line_that_is_lost_takes_the_turns_behind_it_along(run: RunProcess) -> None:
    asked = [["one @@len=20", "two", "three"], ["four @@len=20", "five"]]
    write_conversations(run, asked)
    run.start()
    assert run.wait() == 0, run.log_tail()
    before = sealed(run)
    path = run.output / PARTITION / "responses.jsonl"
    content = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(content[1:]))
    with run.ledger() as ledger, ledger.write() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'running'")

    run.start()
    assert run.wait() == 0, run.log_tail()

    after = sealed(run)
    assert [line["output_ids"] for line in after] == [line["output_ids"] for line in before]
    again = {line["id"] for line in after if line["attempts"] == 2}
    assert again == {"c0", "c0#turn2", "c0#turn3"}
    assert_asked_on_what_is_kept(run, asked, LENGTHS, CAP)
    assert_books_balance(run)
    assert all(row["state"] == SampleState.OK for row in rows_of(run).values())


@pytest.mark.slow
def test_a_pause_keeps_turns_waiting_and_a_resume_asks_them(
    run: RunProcess, simulator: SimulatorThread
) -> None:
    simulator.script({"@@held": ["ok delay=3600"], "*": ["model"]})
    asked = [[f"{word} @@len=20", "two @@held", "three"] for word in WORDS[:4]]
    write_conversations(run, asked)
    run.start()
    wait_for(lambda: _second_turns(run) == 4, "second turns")

    run.order("pause", "test")
    wait_for(lambda: not run.worker_pids(), "the worker to leave")
    (paused,) = run.partitions()
    simulator.script({"*": ["model"]})
    run.order("resume", "test")
    assert run.wait() == 0, run.log_tail()

    assert (paused.counts.ok, paused.counts.pending, paused.n_waiting) == (4, 8, 4)
    assert len(sealed(run)) == n_turns(asked)
    assert_asked_on_what_is_kept(run, asked, LENGTHS, CAP)
    assert_books_balance(run)
