"""The ledger's file among several connections and processes: no lost update, no raw error."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.errors import LedgerError
from app.ledger.db import Ledger
from tests.ledger.hand import numbers
from tests.ledger.scene import Part, Scene

ROOT = Path(__file__).parents[2]
N_PROCESSES = 3


@contextmanager
def held_by_another(path: Path, how: str = "IMMEDIATE") -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"BEGIN {how}")
        yield
        connection.execute("ROLLBACK")


def test_processes_that_write_at_once_lose_nothing(scene: Scene) -> None:
    partition_id = scene.one(n=90)
    command = [sys.executable, "-m", "tests.ledger.writer", str(scene.path)]
    command += [str(partition_id), "30"]
    writers = [
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(N_PROCESSES)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"

    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    kept = [int(writer.communicate(timeout=60)[0]) for writer in writers]

    view = scene.view(partition_id)
    assert kept == [30, 30, 30]
    assert view.counts.ok == 90
    assert (view.tokens.received, view.tokens.kept) == (360, 360)
    assert scene.rows("SELECT max(attempt), count(*) FROM sample") == [(1, 90)]
    scene.check()


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_led_01_a_ledger_held_by_another_is_an_error_that_says_so(scene: Scene, how: str) -> None:
    hand = scene.hand(scene.one())
    hand.ledger = Ledger(scene.path, busy_timeout_ms=20)

    with held_by_another(scene.path, how), pytest.raises(LedgerError) as error:
        hand.claim(1)

    assert str(scene.path) in error.value.message
    assert "locked" in error.value.message
    assert "Another process holds it" in error.value.hint
    assert len(hand.claim(1)) == 1
    hand.ledger.close()
    scene.check()


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_led_01_reading_goes_on_while_another_writes(scene: Scene, how: str) -> None:
    partition_id = scene.one(n=4)
    reader = Ledger(scene.path, busy_timeout_ms=20)

    with held_by_another(scene.path, how), reader.read() as connection:
        count = connection.exec_driver_sql("SELECT count(*) FROM sample").scalar_one()

    assert count == scene.view(partition_id).counts.total == 4
    reader.close()


def test_a_reader_sees_one_moment(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=4))
    with scene.ledger.read() as connection:
        before = connection.exec_driver_sql("SELECT sum(n_running) FROM partition").scalar_one()
        hand.claim(2)
        after = connection.exec_driver_sql(
            "SELECT count(*) FROM sample WHERE state = 'running'"
        ).scalar_one()

    assert before == after == 0


def test_a_write_is_undone_by_any_exception(scene: Scene) -> None:
    partition_id = scene.one(n=4)

    def half_a_write() -> None:
        with scene.ledger.write() as connection:
            connection.exec_driver_sql("UPDATE sample SET state = 'ok'")
            raise KeyError("half way")

    with pytest.raises(KeyError, match="half way"):
        half_a_write()

    assert scene.rows("SELECT DISTINCT state FROM sample") == [("pending",)]
    assert scene.view(partition_id).counts.pending == 4


def test_a_full_disk_is_an_error_with_a_way_out_and_nothing_is_half_written(scene: Scene) -> None:
    partition_id = scene.one(n=2)
    hand = scene.hand(partition_id)
    claim = hand.one()
    before = scene.everything()
    with scene.ledger.read() as connection:
        # The engine's own limit answers as a full disk does.
        connection.exec_driver_sql("PRAGMA max_page_count = 1")

    with pytest.raises(LedgerError, match="full") as error:
        hand.tick((hand.gained(claim, numbers(100_000)),))
    with scene.ledger.read() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")

    assert "Free space" in error.value.hint
    assert scene.everything() == before
    hand.gain(claim, numbers(100_000))
    scene.check()


def test_a_file_that_cannot_be_opened_says_what_to_check(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "missing" / "ledger.db")

    with pytest.raises(LedgerError, match="unable to open") as error, ledger.read():
        pass

    assert "rights" in error.value.hint


def test_a_damaged_file_is_a_ledger_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"no database" * 1000)
    ledger = Ledger(path)

    with pytest.raises(LedgerError, match="not a database"), ledger.read():
        pass


def test_counters_cannot_fall_below_zero(scene: Scene) -> None:
    scene.one(n=1)

    with pytest.raises(LedgerError, match="counters_not_negative"):
        scene.sql("UPDATE partition SET n_running = n_running - 1")


@pytest.mark.parametrize("table", ["sample", "partition", "run"])
def test_a_state_that_is_not_in_the_table_cannot_be_stored(scene: Scene, table: str) -> None:
    scene.one(n=1)

    with pytest.raises(LedgerError, match="state_known"):
        scene.sql(f"UPDATE {table} SET state = 'degraded'")  # noqa: S608 - from the list above


def test_many_runs_in_one_ledger_do_not_disturb_each_other(scene: Scene) -> None:
    made = [
        scene.run(Part(name="a", n=6), Part(name="b", n=6), name=f"run{k}", budget=300)
        for k in range(5)
    ]
    hands = [scene.hand(each) for ids in made for each in ids]
    for hand in hands:
        hand.claim(1)
    for k, hand in enumerate(hands):
        claim = next(iter(hand.claimed.values()))
        if k % 4 == 0:
            hand.keep(claim, unsaved=numbers(k + 1))
        if k % 4 == 1:
            hand.put_back(claim, numbers(k + 1), server_died=True)
        if k % 4 == 2:
            hand.fail(claim, unsaved=numbers(k + 1))

    for k, hand in enumerate(hands):
        view = scene.view(hand.partition_id)
        kept, pending, failed, running = [
            (1, 5, 0, 0),
            (0, 6, 0, 0),
            (0, 5, 1, 0),
            (0, 5, 0, 1),
        ][k % 4]
        counts = view.counts
        assert (counts.kept, counts.pending, counts.failed, counts.running) == (
            kept,
            pending,
            failed,
            running,
        )
        assert view.tokens.received == (0 if running else k + 1)
    scene.check()
