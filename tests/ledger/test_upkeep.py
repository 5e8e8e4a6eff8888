"""The write-ahead log folded in, cut back when large, and held by who reads; what a failure was."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from app.errors import LedgerError
from app.ledger.db import Ledger
from app.ledger.upkeep import WriteTrouble, fold_log, log_bytes, trouble_of
from tests.ledger.scene import Scene
from tests.ledger.test_db import held_by_another

BLOB_BYTES, CUT_BYTES = 1_000_000, 12_000_000


@contextmanager
def reader(scene: Scene) -> Iterator[None]:
    """Another program that has begun to read and does not end."""
    scene.one()
    with closing(sqlite3.connect(scene.path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sample").fetchone()
        yield
        connection.execute("ROLLBACK")


def grow(scene: Scene, n: int) -> None:
    scene.sql("CREATE TABLE IF NOT EXISTS filler (bytes BLOB)")
    for _ in range(n):
        scene.sql(f"INSERT INTO filler VALUES (zeroblob({BLOB_BYTES}))")  # noqa: S608 - a number


def test_a_large_log_is_folded_in_and_cut_back(scene: Scene) -> None:
    with reader(scene):
        grow(scene, 14)
    assert log_bytes(scene.ledger) > 14 * BLOB_BYTES

    log = fold_log(scene.ledger, CUT_BYTES)

    assert (log.n_bytes, log.is_held) == (0, False)


def test_led_02_a_log_that_is_read_is_held_and_shrinks_when_the_reader_ends(scene: Scene) -> None:
    ledger = Ledger(scene.path, busy_timeout_ms=20)
    with closing(ledger):
        with reader(scene):
            grow(scene, 17)
            log = fold_log(ledger, CUT_BYTES)
            assert log.is_held
            assert log.n_bytes > 17 * BLOB_BYTES

        assert not fold_log(ledger, CUT_BYTES).is_held
        assert log_bytes(ledger) < 16_000_000


def test_a_small_log_is_left_as_it_is(scene: Scene) -> None:
    grow(scene, 1)

    log = fold_log(scene.ledger, CUT_BYTES)

    assert not log.is_held
    assert log.n_bytes > BLOB_BYTES


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_lock_is_known_as_such(scene: Scene, how: str) -> None:
    ledger = Ledger(scene.path, busy_timeout_ms=20)
    with (
        closing(ledger),
        held_by_another(scene.path, how),
        pytest.raises(LedgerError) as caught,
        ledger.write(),
    ):
        pass

    assert trouble_of(caught.value) is WriteTrouble.LOCKED


def test_a_full_disk_is_known_as_such_and_anything_else_as_neither(scene: Scene) -> None:
    with scene.ledger.read() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")
    with pytest.raises(LedgerError) as full:
        grow(scene, 1)
    with pytest.raises(LedgerError) as other:
        scene.sql("INSERT INTO nowhere VALUES (1)")

    assert trouble_of(full.value) is WriteTrouble.FULL
    assert trouble_of(other.value) is WriteTrouble.OTHER
    assert trouble_of(LedgerError("of ours")) is WriteTrouble.OTHER
