"""Doors of two kinds over one home: one that lets its own user in, one that wants the token.

`quiet` and `shut` are the same two, standing for a whole module: for what may change nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.api.home import Home
from tests.gate.standing import Standing, standing

MORE_HOSTS = "headnode, proxy.example:443"


@contextmanager
def at_home(folder: Path, *, is_open_to_own_user: bool) -> Iterator[Standing]:
    home = Home(folder / "home")
    try:
        with standing(home, is_open_to_own_user=is_open_to_own_user, more_hosts=MORE_HOSTS) as door:
            yield door
    finally:
        home.ledger.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Standing]:
    """Return the door of `longwatch serve` on a machine that others use too."""
    with at_home(tmp_path, is_open_to_own_user=True) as door:
        yield door


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Standing]:
    """Return the door of a service that a token was set for."""
    with at_home(tmp_path, is_open_to_own_user=False) as door:
        yield door


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with at_home(tmp_path_factory.mktemp("quiet"), is_open_to_own_user=True) as door:
        yield door
        assert str(door.home.run.state) == "running"


@pytest.fixture(scope="module")
def shut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with at_home(tmp_path_factory.mktemp("shut"), is_open_to_own_user=False) as door:
        yield door
        assert str(door.home.run.state) == "running"
