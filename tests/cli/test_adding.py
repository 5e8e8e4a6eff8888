"""`longwatch add`: the living service gets the spec; without one the home is locked meanwhile."""

import asyncio
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.ledger.lock import acquire
from tests.api.conftest import Door
from tests.api.home import Home
from tests.cli.conftest import Longwatch


@pytest.fixture
def spec(home: Home, tmp_path: Path) -> str:
    path = tmp_path / "more.toml"
    path.write_text(
        f"""[run]
name = "more"
server_urls = ["{home.server_url}"]
prompts_dir = "{home.output_dir}"
output_dir = "{home.output_dir}"
startup_wait_s = 0
[class.short]
concurrency = 8
max_new_tokens = 100
[partition.B9_new]
class = "short"
"""
    )
    return str(path)


def test_the_spec_is_given_to_the_service_that_lives(
    longwatch: Longwatch, home: Home, service: Door, spec: str
) -> None:
    for words in (("night", spec), (spec,)):
        told = longwatch("add", *words)
        assert (told.code, told.error) == (0, "")
        assert "in this run already, and left as they are: B1_chat" in told.out
        assert 'run 1 "night": added B9_new' in told.out
        assert "No service runs" not in told.out
    run_id, given, who = service.added[0]
    assert (run_id, list(given.partitions)) == (home.run_id, ["B9_new"])
    assert who == "operator (command line)"


def test_without_a_service_what_is_wrong_is_told_and_nothing_added(
    longwatch: Longwatch, home: Home, spec: str
) -> None:
    told = longwatch("add", "night", spec)
    assert told.code == 1
    assert "B9_new" in told.error
    assert told.error.startswith("error: ")
    assert [home.partition(name).name for name in home.names] == ["B1_chat", "B2_code"]


def test_a_home_that_is_in_use_is_not_written_to(
    longwatch: Longwatch, home: Home, spec: str
) -> None:
    """It is taken by a process that does not say where it listens."""
    lock = asyncio.run(acquire(home.folder, SystemClock()))
    try:
        told = longwatch("add", "night", spec)
    finally:
        lock.release()
    assert told.code == 1
    assert "has not said yet where it listens" in told.error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("night", "B1_chat", "SPEC"), "there are too many names: B1_chat"),
        (("night", "nowhere.toml"), "cannot read the spec nowhere.toml"),
        (("day", "SPEC"), 'there is no run "day"'),
        ((), "Missing argument"),
    ],
)
def test_wrong_words_are_told(
    longwatch: Longwatch, home: Home, spec: str, words: tuple[str, ...], message: str
) -> None:
    told = longwatch("add", *(word.replace("SPEC", spec) for word in words))
    assert told.code == 1
    assert message in told.error
