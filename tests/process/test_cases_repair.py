"""Cases res-05 and res-07 with real processes: output and ledger that differ, and failed rows."""

import contextlib
import json
import sqlite3
from collections.abc import Mapping

import pytest

from app.core.states import RunState
from app.simulator.server import SimulatorThread
from tests.cases.settings import calls
from tests.process.accounts import assert_books_balance
from tests.process.case_run import PARTITION, CaseRun, calls_since

ROWS = [f"a{n}" for n in range(6)]
POINTER = "shard_id = NULL, line_offset = NULL, line_bytes = NULL, output_tokens = 0"
PENDING = f"state = 'pending', claim_rank = 1, {POINTER}"


def edit_ledger(run: CaseRun, changes: Mapping[str, str]) -> None:
    """Change rows of samples as a person with the sqlite3 command does: nothing else follows."""
    with contextlib.closing(sqlite3.connect(run.home / "ledger.db")) as connection, connection:
        for key, change in changes.items():
            words = f"UPDATE sample SET {change} WHERE key = ?"  # noqa: S608 - the test's own
            connection.execute(words, (key,))


def edit_output(run: CaseRun, *, without: set[str], doubled: str) -> None:
    path = run.output / PARTITION / "responses.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["id"] not in without]
    path.write_bytes(b"".join(kept) + next(x for x in lines if json.loads(x)["id"] == doubled))


@pytest.mark.parametrize(
    "a5",
    [f"state = 'running', worker_id = 1, {POINTER}", f"state = 'running', {POINTER}"],
    ids=["of its worker", "of nobody"],
)
@pytest.mark.slow
def test_res_05_output_and_ledger_edited_by_hand(
    run: CaseRun, simulator: SimulatorThread, a5: str
) -> None:
    simulator.script({"*": ["ok"]})
    run.write_rows(ROWS)
    assert run.to_the_end() == 0, run.log_tail()
    before = calls(simulator)
    edit_output(run, without={"a1", "a3", "a5"}, doubled="a4")
    edit_ledger(run, {"a0": PENDING, "a3": PENDING, "a5": a5})

    assert run.to_the_end() == 0, run.log_tail()

    assert calls_since(simulator, before) == {"a1": 1, "a3": 1, "a5": 1}
    run.assert_whole(ROWS)
    assert set(run.states().values()) == {"ok"}
    assert_books_balance(run)
    report = next(deed for deed in run.deeds() if deed.event == "files repaired")
    assert "responses.jsonl: 2 lines as recorded, 1 adopted, 1 samples put back" in report.detail
    assert "1 lines dropped" in report.detail
    assert report.detail in run.log()


@pytest.mark.slow
def test_res_05_a_line_whose_row_alone_was_set_back_is_adopted(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """The one row that was changed has not moved the counters, and nothing else is pending."""
    simulator.script({"*": ["ok"]})
    run.write_rows(ROWS)
    assert run.to_the_end() == 0, run.log_tail()
    path = run.output / PARTITION / "responses.jsonl"
    path.write_bytes(path.read_bytes() + b'{"torn')
    edit_ledger(run, {"a0": PENDING})

    assert run.to_the_end() == 0, run.log_tail()

    assert simulator.stats.calls_total == len(ROWS)
    run.assert_whole(ROWS)
    assert_books_balance(run)


@pytest.mark.slow
def test_res_05_a_finished_run_that_nobody_edited_is_left_as_it_is(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script({"*": ["ok"]})
    run.write_rows(ROWS)
    assert run.to_the_end() == 0, run.log_tail()
    path = run.output / PARTITION / "responses.jsonl"
    before = path.stat()

    assert run.to_the_end() == 0, run.log_tail()

    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert simulator.stats.calls_total == len(ROWS)
    assert "files repaired" not in {deed.event for deed in run.deeds()}


@pytest.mark.slow
def test_res_07_failed_rows_are_offered_and_tried_again_alone(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """The run ends with code 2 and says how to try again; a start without that tries nothing."""
    broken = {"json": [500, {"detail": "boom"}]}
    simulator.set(context_length=600)
    simulator.script({"@@500": [broken, broken, "ok"], "*": ["ok"]})
    rows = [f"a{n} @@500" if n in (3, 7) else f"a{n}" for n in range(9)]
    rows.append("a9 " + "long " * 200)
    run.run_lines = "max_attempts = 2"
    run.write_spec()
    run.write_rows(rows)

    assert run.to_the_end() == 2, run.log_tail()
    assert "Finished with 2 failed samples" in run.log_tail()
    assert "longwatch retry" in run.log_tail()
    assert run.to_the_end() == 2, run.log_tail()
    assert calls(simulator) == {f"a{n}": 2 if n in (3, 7) else 1 for n in range(9)}

    assert "2 pending again" in run.order("retry", "--state", "failed")
    view = run.run_view()
    assert view is not None
    assert view.state is RunState.RUNNING
    assert run.to_the_end() == 0, run.log_tail()

    assert run.states() == {f"a{n}": "ok" for n in range(9)} | {"a9": "rejected"}
    assert calls(simulator) == {f"a{n}": 3 if n in (3, 7) else 1 for n in range(9)}
    run.assert_whole(rows[:9])
    history = _reasons(run, "a3")
    assert len(history) == 2
    assert all("boom" in reason for reason in history)


def _reasons(run: CaseRun, key: str) -> list[str]:
    with run.ledger() as ledger, ledger.read() as connection:
        found = connection.exec_driver_sql(
            "SELECT a.reason FROM attempt a JOIN sample s ON s.id = a.sample_id"
            " WHERE s.key = ? ORDER BY a.id",
            (key,),
        )
        return [str(reason) for reason in found.scalars()]
