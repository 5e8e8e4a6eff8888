"""A fresh ledger for each test, copied from one that was migrated once."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.ledger.migrate import upgrade
from tests.ledger.scene import Scene


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "ledger.db"
    upgrade(path)
    return path


@pytest.fixture
def scene(tmp_path: Path, empty_ledger: Path) -> Iterator[Scene]:
    path = tmp_path / "ledger.db"
    shutil.copy(empty_ledger, path)
    opened = Scene(path)
    yield opened
    opened.close()
