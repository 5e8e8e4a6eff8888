"""Case led-05 with a real process of an ordinary user: each missing right is named, none asked.

Root may write everywhere, so under root the program runs as another user. It keeps only the right
to read what it needs (the interpreter may lie in root's own folder); without `setpriv` the tests
are skipped there, and `tests/files/test_ownership.py` shows the same one floor lower.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.simulator.server import SimulatorThread
from tests.process.case_run import PARTITION, CaseRun

NOBODY = 65_534
IS_ROOT = os.geteuid() == 0
AS_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"),
)
pytestmark = pytest.mark.skipif(
    IS_ROOT and shutil.which("setpriv") is None, reason="root without setpriv has every right"
)


@pytest.fixture
def run(simulator: SimulatorThread) -> Iterator[CaseRun]:
    """A run of an ordinary user, in a folder of its own: pytest's are closed to others."""
    simulator.script({"*": ["ok"]})
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        run = CaseRun(folder, simulator.url, wrapper=AS_NOBODY if IS_ROOT else ())
        run.write_rows(["a0", "a1"])
        give_away(folder)
        yield run
        run.close()
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o700)


def give_away(folder: Path) -> None:
    if IS_ROOT:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)


def assert_refused(run: CaseRun, simulator: SimulatorThread, path: Path, *words: str) -> None:
    before = dict(simulator.stats.http_requests)
    told = run.ask("run", str(run.spec), "--port", "0")
    assert told.returncode == 1, told.stdout
    assert told.stderr.startswith("error: ")
    assert "Traceback" not in told.stderr
    assert "internal error" not in told.stderr
    for word in (str(path), *words):
        assert word in told.stderr
    assert simulator.stats.http_requests == before


def test_led_05_an_output_folder_that_may_not_be_written(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    run.output.mkdir(mode=0o555)
    give_away(run.folder)
    assert_refused(run, simulator, run.output, "has mode 0555", "lacks the right to write")
    assert run.n_runs() == 0
    assert list(run.output.iterdir()) == []


def test_led_05_a_home_that_may_not_be_written(run: CaseRun, simulator: SimulatorThread) -> None:
    run.home.mkdir(mode=0o555)
    give_away(run.folder)
    assert_refused(run, simulator, run.home, "has mode 0555", "lacks the right to write", "--home")
    assert list(run.home.iterdir()) == []


def test_led_05_a_ledger_that_may_not_be_written(run: CaseRun, simulator: SimulatorThread) -> None:
    assert run.to_the_end() == 0, run.log_tail()
    (run.home / "ledger.db").chmod(0o444)
    run.write_rows(["a0", "a1"], "B3_new")
    give_away(run.folder)
    assert_refused(run, simulator, run.home / "ledger.db", "right")
    assert not (run.output / "B3_new").exists()


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a file to another user")
@pytest.mark.parametrize(
    "command",
    ["run", *(pytest.param(each, marks=pytest.mark.slow) for each in ("status", "pause"))],
)
def test_led_05_a_home_of_another_user(
    run: CaseRun, simulator: SimulatorThread, command: str
) -> None:
    as_nobody, run.wrapper = run.wrapper, ()
    assert run.to_the_end() == 0, run.log_tail()
    run.wrapper = as_nobody
    told = run.ask(command, *([str(run.spec), "--port", "0"] if command == "run" else []))
    assert told.returncode == 1
    assert told.stderr.startswith("error: cannot open ")
    assert str(run.home) in told.stderr
    assert "Run as the user whose home it is" in told.stderr


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a file to another user")
@pytest.mark.slow
def test_led_05_an_output_file_that_belongs_to_another_user(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """Their file in a folder of ours: it could be replaced, which is not ours to do."""
    path = run.output / PARTITION / "responses.jsonl"
    path.parent.mkdir(parents=True)
    give_away(run.folder)
    path.write_bytes(b"theirs\n")
    assert_refused(run, simulator, path, "belongs to the user root")
    assert path.read_bytes() == b"theirs\n"
    assert run.n_runs() == 0
