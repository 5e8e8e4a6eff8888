"""Brings a ledger file to the newest schema, after a copy of the old one.

Owns where the migrations lie: beside the source tree, or bundled in the wheel. Called only under
the home folder's lock.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from app.errors import LedgerError

_PACKAGE = Path(__file__).resolve().parent.parent


def bundled(folder: str) -> Path:
    """Return the folder of ours that is called so: bundled in the wheel, else in the tree."""
    inside = _PACKAGE / "_bundle" / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder


def configuration(path: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(bundled("migrations")).replace("%", "%%"))
    config.set_main_option("sqlalchemy.url", f"sqlite:///{path}".replace("%", "%%"))
    return config


def upgrade(path: Path) -> str | None:
    """Create or upgrade the ledger; return the revision it had before, None if it was new.

    Raises LedgerError if the file is not a ledger or is newer than this program.
    """
    before = revision_of(path)
    config = configuration(path)
    newest = ScriptDirectory.from_config(config).get_current_head()
    if before == newest:
        return before
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if before is not None and before not in known:
        raise LedgerError(
            f"ledger {path} has schema {before}, which this version does not know",
            hint="Install the newer version that wrote it, or use another --home",
        )
    if before is not None:
        shutil.copy2(path, path.with_name(f"{path.name}.before-{newest}"))
    command.upgrade(config, "head")
    return before


def revision_of(path: Path) -> str | None:
    """Return the schema revision of a ledger file, None if the file is new or empty."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise LedgerError(
            f"{path} is not a Longwatch ledger ({error})",
            hint="Move it away or use another --home",
        ) from error
    return str(row[0]) if row else None
