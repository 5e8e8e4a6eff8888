"""The ledger's file: made from nothing, equal to the models, refused where it is not ours."""

import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from app.core.spread import Measure, Spread
from app.core.states import SampleState
from app.core.types import Gain, Keep, PartitionId, SampleId, Settled, WorkerId
from app.errors import LedgerError
from app.ledger import measures, migrate, runs, tables
from app.ledger.db import Ledger
from tests.ledger.hand import GEN, URL, Hand

NEWEST = "0004"
INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"


def test_a_ledger_from_nothing_is_what_the_models_say(empty_ledger: Path) -> None:
    engine = create_engine(f"sqlite:///{empty_ledger}")
    with engine.connect() as connection:
        differences = compare_metadata(
            MigrationContext.configure(connection, opts={"compare_type": True}),
            tables.Base.metadata,
        )
    engine.dispose()

    assert differences == []


def test_alembic_finds_nothing_to_generate(empty_ledger: Path) -> None:
    command.check(migrate.configuration(empty_ledger))


def test_the_partial_indexes_have_the_conditions_of_the_models(
    empty_ledger: Path, tmp_path: Path
) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'models.db'}")
    tables.Base.metadata.create_all(engine)
    engine.dispose()

    assert _indexes(empty_ledger) == _indexes(tmp_path / "models.db")


def _indexes(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name: " ".join(sql.split()) for name, sql in connection.execute(INDEXES)}


def test_a_second_upgrade_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert migrate.upgrade(path) is None
    before = path.read_bytes()

    revision = migrate.upgrade(path)

    assert revision == migrate.revision_of(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["ledger.db"]


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch()

    assert migrate.upgrade(path) is None

    assert migrate.revision_of(path) is not None


def test_a_newer_ledger_is_refused_by_its_schema_and_left_alone(
    empty_ledger: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(empty_ledger, tmp_path / "ledger.db"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    before = path.read_bytes()

    with pytest.raises(LedgerError, match="schema 9999") as refusal:
        migrate.upgrade(path)

    assert str(path) in refusal.value.message
    assert "newer version" in refusal.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database, but long enough" * 40, b"\x00" * 4096])
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)

    with pytest.raises(LedgerError, match="not a Longwatch ledger") as refusal:
        migrate.upgrade(path)

    assert str(path) in refusal.value.message
    assert "--home" in refusal.value.hint
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER)")
        connection.commit()

    with pytest.raises(LedgerError, match="not a Longwatch ledger"):
        migrate.upgrade(path)


def test_a_ledger_that_another_program_holds_is_not_called_foreign(
    empty_ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(empty_ledger, tmp_path / "ledger.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("PRAGMA journal_mode = DELETE")
        holder.execute("BEGIN EXCLUSIVE")
        # The wait of five seconds is shortened; nothing else.
        monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0.05))

        with pytest.raises(LedgerError, match="locked") as refusal:
            migrate.revision_of(path)

    assert "not a Longwatch ledger" not in refusal.value.message
    assert "holds it" in refusal.value.hint


@pytest.mark.parametrize("name", ["with space", "50%", "what?", "a#b", "a%20b", "häuser"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    path = folder / "ledger.db"

    migrate.upgrade(path)

    ledger = Ledger(path)
    with ledger.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM run").scalar_one() == 0
    ledger.close()
    assert migrate.revision_of(path) is not None
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_an_upgrade_keeps_a_whole_copy_of_the_old_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest rows may stand in the write-ahead log only, after a kill."""
    path = tmp_path / "ledger.db"
    migrate.upgrade(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as killed:
        killed.execute("PRAGMA journal_mode = WAL")
        killed.execute("PRAGMA wal_autocheckpoint = 0")
        killed.execute("INSERT INTO activity (at_ms, who, event, detail) VALUES (1, 'a', 'b', '')")
        monkeypatch.setattr(migrate, "bundled", lambda _: _migrations_with_one_more(tmp_path))

        before = migrate.upgrade(path)

    assert before == NEWEST
    assert migrate.revision_of(path) == "9999"
    copy = tmp_path / "ledger.db.before-9999"
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT who FROM activity").fetchall() == [("a",)]
        assert connection.execute("SELECT * FROM alembic_version").fetchall() == [(NEWEST,)]


def test_a_ledger_of_revision_0002_goes_on_with_its_run_and_without_old_measures(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.db"
    command.upgrade(migrate.configuration(path), "0002")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        _insert(connection, "run", id=1, name="night", state="running")
        _insert(connection, "partition", id=1, run_id=1, name="p", state="active", n_ok=1)
        _insert(connection, "worker", id=1, partition_id=1, state="working")
        _insert(connection, "sample", id=1, partition_id=1, position=0, key="old", state="ok")
        going = {"worker_id": 1, "attempt": 1}
        _insert(
            connection,
            "sample",
            id=2,
            partition_id=1,
            position=1,
            key="x",
            state="running",
            **going,
        )
        connection.execute("UPDATE partition SET n_running = 1")

    assert migrate.upgrade(path) == "0002"

    ledger = Ledger(path)
    assert runs.get_partition(ledger, PartitionId(1)).counts.ok == 1
    assert measures.spread(ledger, PartitionId(1), Measure.OUTPUT) == Spread()
    hand = Hand(ledger, PartitionId(1), WorkerId(1))
    line, keep = hand.line(5), Keep(state=SampleState.OK, finish_reason="stop")
    gain = Gain(
        sample_id=SampleId(2),
        attempt=1,
        from_token=0,
        rid="r",
        server=URL,
        gen_id=GEN,
        ids=bytes(20),
    )
    entry = Settled(
        sample_id=SampleId(2), attempt=1, outcome=keep, held_tokens=0, line=line, unsaved=gain
    )
    hand.tick(settled=(entry,))
    assert measures.spread(ledger, PartitionId(1), Measure.OUTPUT) == Spread.of([5])
    ledger.close()
    assert (tmp_path / f"ledger.db.before-{NEWEST}").exists()
    assert any(name == "ix_sample_key" for name in _indexes(path))


def _insert(connection: sqlite3.Connection, table: str, **values: object) -> None:
    """Insert a row; what is demanded and not given is 0."""
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    row = {name: 0 for _, name, _, is_demanded, default, _ in columns if is_demanded} | values
    marks = ", ".join("?" for _ in row)
    statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608 - ours
    connection.execute(statement, list(row.values()))


def _migrations_with_one_more(folder: Path) -> Path:
    made = folder / "migrations"
    if not made.exists():
        shutil.copytree(Path(__file__).parents[2] / "migrations", made)
        (made / "versions" / "9999_next.py").write_text(
            "from alembic import op\n"
            "import sqlalchemy as sa\n"
            f"revision = '9999'\ndown_revision = '{NEWEST}'\n"
            "branch_labels = None\ndepends_on = None\n"
            "def upgrade():\n"
            "    op.add_column('run', sa.Column('note', sa.String(), nullable=True))\n"
        )
    return made
