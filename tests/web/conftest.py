"""A home with a ledger of its own, and the door through which pages reach it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.conftest import Door
from tests.api.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    yield home
    home.ledger.close()


@pytest.fixture
def door(home: Home) -> Door:
    return Door(home)
