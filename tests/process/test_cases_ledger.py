"""Cases led-01 to led-03 with real processes: a locked ledger, a long reader, a full disk."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from app.core.conditions import ConditionKind
from app.simulator.server import SimulatorThread
from tests.notifying.receiver import Receiver
from tests.process.accounts import assert_books_balance
from tests.process.case_run import HANG_S, SHORT_TICK, CaseRun
from tests.process.condition_eyes import heard_by, watching
from tests.process.run_process import wait_for
from tests.process.test_cases_storage import small_disk

ANSWERS_WITHIN_S = 2.0


def said(figures: dict[str, Any], kind: ConditionKind) -> str:
    """Return the sentence of a condition, "" if it does not hold."""
    return next((one["sentence"] for one in figures["conditions"] if one["kind"] == kind), "")


@contextmanager
def other_program(run: CaseRun, *statements: str) -> Iterator[None]:
    """Have the ledger open as another program has, in a transaction until the end of the block."""
    path = run.home / "ledger.db"
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()
        yield
        connection.execute("ROLLBACK")


def begins_and_ends(run: CaseRun, kind: ConditionKind) -> list[bool]:
    """Return the entries of that condition, the oldest first: whether each is an end."""
    return [
        deed.detail.startswith("over after") for deed in reversed(run.deeds()) if deed.event == kind
    ]


@pytest.mark.slow
@pytest.mark.alone
def test_led_01_a_ledger_locked_by_another_process(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    simulator.script({"*": ["ok delay=1"]})
    rows = [f"a{n}" for n in range(50)]
    run.write_rows(rows)
    run.environment, run.has_pages = {**SHORT_TICK, **heard_by(receiver)}, True
    run.start()
    run.wait_kept(8)

    told, ages = "", []
    with watching(run, receiver) as eyes, other_program(run, "BEGIN EXCLUSIVE"):
        began_at = time.monotonic()
        while time.monotonic() < began_at + 10:
            figures = run.figures(timeout_s=ANSWERS_WITHIN_S)
            ages.append(time.time() - datetime.fromisoformat(figures["at"]).timestamp())
            told = told or said(figures, ConditionKind.LEDGER_LOCKED)
            if told:
                eyes.look()
            time.sleep(0.1)

    assert "The ledger has been locked by " in told
    assert max(ages) < 10
    assert run.wait(HANG_S) == 0, run.log_tail()
    assert simulator.stats.calls_total == 50
    assert begins_and_ends(run, ConditionKind.LEDGER_LOCKED) == [False, True]
    assert (str(ConditionKind.LEDGER_LOCKED), "") in eyes.seen
    eyes.assert_messages([(str(ConditionKind.LEDGER_LOCKED), "")])
    run.assert_whole(rows)
    assert_books_balance(run)


@pytest.mark.slow
@pytest.mark.alone
def test_led_02_the_log_behind_a_long_reader(
    run: CaseRun,
    simulator: SimulatorThread,
    receiver: Receiver,
) -> None:
    """The warning comes at 64 MB. The reader then leaves."""
    warn_bytes, small_bytes = 64_000_000, 16_000_000
    simulator.script({"*": ["ok with 200 output tokens, delay=0.1"]})
    run.environment = {
        "LONGWATCH_TICK_S": "0.05",
        "LONGWATCH_LEDGER_LOG_WARN_BYTES": str(warn_bytes),
        **heard_by(receiver),
    }
    run.has_pages = True
    run.concurrency = 32  # the log grows by ticks: it is to pass its limit half-way
    run.write_spec()
    rows = [f"a{n}" for n in range(20_000)]
    run.write_rows(rows)
    run.start()
    run.wait_kept(1)
    log = run.home / "ledger.db-wal"

    key = (str(ConditionKind.LEDGER_LOG), "")
    with (
        watching(run, receiver) as eyes,
        other_program(run, "BEGIN", "SELECT count(*) FROM sample"),
    ):
        eyes.wait(key, within_s=150)
        wait_for(
            lambda: "has kept it open for reading" in said(run.figures(), ConditionKind.LEDGER_LOG),
            "the cause",
        )
        assert log.stat().st_size >= warn_bytes
    wait_for(lambda: log.stat().st_size < small_bytes, "a small log", 60)
    wait_for(lambda: not said(run.figures(), ConditionKind.LEDGER_LOG), "no warning")

    assert run.is_alive()
    assert run.wait() == 0, run.log_tail()
    assert begins_and_ends(run, ConditionKind.LEDGER_LOG) == [False, True]
    eyes.assert_messages([key])
    run.assert_whole(rows)


def fill(path: Path) -> None:
    """Write there until the disk takes nothing more."""
    with path.open("wb", buffering=0) as sink:
        for size in (65_536, 4_096, 512):
            with suppress(OSError):
                while True:
                    sink.write(bytes(size))


@pytest.mark.slow
@pytest.mark.alone
def test_led_03_a_full_disk_under_the_ledger(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    """By design nobody need resume: it goes on by itself as soon as there is space."""
    simulator.script({"*": ["ok with 100 output tokens, delay=0.1"]})
    rows = [f"a{n}" for n in range(500)]
    run.environment = {
        **SHORT_TICK,
        "LONGWATCH_DISK_STOP_BYTES": "0",
        **heard_by(receiver),
    }
    run.has_pages = True
    key = (str(ConditionKind.LEDGER_FULL), "")
    run.write_rows(rows)
    filler = run.home / "filler"
    try:
        with small_disk(run.home, "1m"):
            run.start()
            run.wait_kept(50)
            fill(filler)
            wait_for(
                lambda: said(run.figures(timeout_s=ANSWERS_WITHIN_S), ConditionKind.LEDGER_FULL),
                "the banner",
                10,
            )
            with watching(run, receiver) as eyes:
                eyes.wait(key, within_s=10)
            wait_for(lambda: simulator.stats.in_flight == 0, "nothing in flight", HANG_S)
            sentence = said(run.figures(timeout_s=ANSWERS_WITHIN_S), ConditionKind.LEDGER_FULL)
            assert str(run.home) in sentence
            assert "goes on by itself" in sentence
            workers = run.worker_pids()
            assert len(workers) == 1
            assert simulator.stats.calls_total < 500

            filler.unlink()

            wait_for(lambda: run.kept() > 250, "more answers", HANG_S)
            assert run.worker_pids() == workers
            wait_for(lambda: not said(run.figures(), ConditionKind.LEDGER_FULL), "no banner", 10)
            assert run.wait(HANG_S) == 0, run.log_tail()
            assert simulator.stats.calls_total == 500
            assert begins_and_ends(run, ConditionKind.LEDGER_FULL) == [False, True]
            eyes.assert_messages([key])
            run.assert_whole(rows)
            assert_books_balance(run)
    finally:
        run.close()
