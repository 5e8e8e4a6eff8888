"""A home, and what `longwatch` prints and returns for it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.cli import main
from tests.api.home import Home


@dataclass(frozen=True)
class Told:
    code: int
    out: str
    error: str


Longwatch = Callable[..., Told]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    yield home
    home.ledger.close()


@pytest.fixture
def longwatch(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Longwatch:
    """Return the command, with the test's home as its home."""
    monkeypatch.setenv("LONGWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> Told:
        capfd.readouterr()
        code = main(words)
        out, error = capfd.readouterr()
        assert "Traceback" not in out + error
        return Told(code, out, error)

    return run
