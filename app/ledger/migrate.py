"""Brings a ledger file to the newest schema, after a copy of the old one.

Owns where the migrations lie: beside the source tree, or bundled in the wheel. Called only under
the home folder's lock.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import URL

from app.errors import LedgerError

# What a file that may well be a ledger answers to somebody without the rights to it.
_FORBIDDEN = frozenset({sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
_PACKAGE = Path(__file__).resolve().parent.parent


def bundled(folder: str) -> Path:
    """Return the folder of ours that is called so: bundled in the wheel, else in the tree."""
    inside = _PACKAGE / "_bundle" / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder


def configuration(path: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(bundled("migrations")).replace("%", "%%"))
    url = URL.create("sqlite", database=str(path)).render_as_string()
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config


def upgrade(path: Path) -> str | None:
    """Create or upgrade the ledger; return the revision it had before, None if it was new.

    Raises LedgerError if the file is not a ledger or is newer than this program.
    """
    before = known_revision_of(path)
    config = configuration(path)
    newest = ScriptDirectory.from_config(config).get_current_head()
    if before == newest:
        return before
    if before is not None:
        _copy(path, path.with_name(f"{path.name}.before-{newest}"))
    command.upgrade(config, "head")
    return before


def _copy(path: Path, target: Path) -> None:
    """Copy a ledger with what still stands in its write-ahead log after a kill."""
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)


def known_revision_of(path: Path) -> str | None:
    """Return the schema revision, None if the file is new; LedgerError if it is not of ours."""
    found = revision_of(path)
    scripts = ScriptDirectory.from_config(configuration(path))
    if found is not None and found not in {each.revision for each in scripts.walk_revisions()}:
        raise LedgerError(
            f"ledger {path} has schema {found}, which this version does not know",
            hint="Install the newer version that wrote it, or use another --home",
        )
    return found


def is_newest(path: Path) -> bool:
    """Return whether there is a ledger that this program can read as it stands."""
    found = known_revision_of(path)
    scripts = ScriptDirectory.from_config(configuration(path))
    return found is not None and found == scripts.get_current_head()


def revision_of(path: Path) -> str | None:
    """Return the schema revision of a ledger file, None if the file is new or empty."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise LedgerError(
                f"ledger {path}: {error}", hint="Another process holds it; let that end first"
            ) from error
        if error.sqlite_errorcode & 0xFF in _FORBIDDEN:  # the low byte is the kind
            raise LedgerError(
                f"cannot open the ledger {path}: {error}",
                hint="Run as the user whose home it is, or give another --home",
            ) from error
        raise LedgerError(
            f"{path} is not a Longwatch ledger ({error})",
            hint="Move it away or use another --home",
        ) from error
    return str(row[0]) if row else None
