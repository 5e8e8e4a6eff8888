"""The one way into the ledger's file: engine, pragmas, read and write transactions.

Writes begin with BEGIN IMMEDIATE, so two writers wait for each other instead of failing half-way;
reads are short. Library errors become LedgerError here and go no higher.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.errors import LedgerError

BUSY_TIMEOUT_MS = 5_000
_PAGE_BYTES, _FOLD_AFTER_PAGES, _LEAST_FOLD_PAGES, _DISK_SHARE = 4_096, 1_000, 16, 16


class Ledger:
    """A handle to one ledger file; cheap, thread-safe, one per process."""

    def __init__(self, path: Path, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._fold_after_pages = fold_after_pages(path)
        self._engine = create_engine(
            URL.create("sqlite", database=str(path)),
            connect_args={"check_same_thread": False},
            pool_size=8,
        )
        event.listen(self._engine, "connect", self._on_connect)
        event.listen(self._engine, "begin", _on_begin)

    def _on_connect(self, connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions are ours to begin
        cursor = connection.cursor()
        for pragma in (
            f"busy_timeout = {self._busy_timeout_ms}",
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "foreign_keys = ON",
            "journal_size_limit = 16777216",
            "temp_store = MEMORY",
            f"wal_autocheckpoint = {self._fold_after_pages}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a short read transaction: one consistent view."""
        with self._transaction(write=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a write transaction; commits at the end, rolls back on any exception."""
        with self._transaction(write=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Connection]:
        try:
            with (
                self._engine.connect().execution_options(longwatch_write=write) as connection,
                connection.begin(),
            ):
                yield connection
        except DBAPIError as error:
            raise LedgerError(
                f"ledger {self.path}: {error.orig}", hint=_hint(str(error.orig))
            ) from error
        except SQLAlchemyError as error:
            raise LedgerError(f"ledger {self.path}: {error}") from error

    def pragma(self, statement: str) -> tuple[int, ...]:
        """Run what may not stand in a transaction; return the one row that it answers."""
        try:
            connection = self._engine.raw_connection()
            try:
                row: tuple[int, ...] = connection.cursor().execute(statement).fetchone()
            finally:
                connection.close()
        except (DBAPIError, sqlite3.Error) as error:
            raise LedgerError(f"ledger {self.path}: {error}", hint=_hint(str(error))) from error
        return row

    def close(self) -> None:
        self._engine.dispose()


def fold_after_pages(path: Path) -> int:
    """Return after how many pages the log is folded in: SQLite's thousand, fewer on a small disk.

    On a disk of a few megabytes the log alone would fill it before (led-03).
    """
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return _FOLD_AFTER_PAGES
    share_pages = disk.f_blocks * disk.f_frsize // _PAGE_BYTES // _DISK_SHARE
    return max(_LEAST_FOLD_PAGES, min(_FOLD_AFTER_PAGES, share_pages))


def _on_begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("longwatch_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _hint(message: str) -> str:
    if "locked" in message or "busy" in message:
        return "Another process holds it; work goes on by itself, give an order once more"
    if "full" in message:
        return "Free space on the disk of the home folder; work goes on by itself"
    if "readonly" in message or "unable to open" in message:
        return "Check the owner and the rights of the home folder and of the file"
    return ""
