"""`token`: where the tokens are, and new ones; none of them is ever printed."""

from pathlib import Path

import pytest

from app.gate import home_token, read_token
from app.gate.token_file import VIEW_TOKEN_NAME
from tests.cli.conftest import Longwatch


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home that nothing ran in yet."""
    home = tmp_path / "home"
    home.mkdir()
    return home


def test_it_says_where_the_tokens_are_and_prints_none(longwatch: Longwatch, home: Path) -> None:
    token = home_token(home)
    told = longwatch("token")
    assert told.code == 0
    assert str(home / "token") in told.out
    assert "longwatch token rotate --view makes one" in told.out
    assert token not in told.out


def test_a_new_token_takes_the_place_of_the_old_one(longwatch: Longwatch, home: Path) -> None:
    old = home_token(home)
    told = longwatch("token", "rotate")
    new = read_token(home)
    assert told.code == 0
    assert "No service lives on this home" in told.out
    assert new is not None
    assert new != old
    assert new not in told.out
    assert longwatch("token", "rotate", "--view").code == 0
    assert read_token(home) == new
    assert read_token(home, VIEW_TOKEN_NAME) not in (None, new)


@pytest.mark.parametrize(
    ("variable", "more"), [("LONGWATCH_TOKEN", []), ("LONGWATCH_VIEW_TOKEN", ["--view"])]
)
def test_a_token_of_the_environment_is_changed_there(
    longwatch: Longwatch,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    more: list[str],
) -> None:
    monkeypatch.setenv(variable, "a-token-that-was-set")
    told = longwatch("token", "rotate", *more)
    assert told.code == 1
    assert f"set another {variable}" in told.error.replace("Set", "set")
    assert "a-token-that-was-set" not in told.out + told.error
    assert read_token(home) is None
    assert f"from {variable}" in longwatch("token").out


def test_another_word_is_no_action(longwatch: Longwatch) -> None:
    told = longwatch("token", "rotat")
    assert told.code == 1
    assert 'token: "rotat" is no action' in told.error
