"""What holds for every command: help, exit codes, environment twins, one message per error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from app.cli.application import make_application
from tests.cli.conftest import Longwatch

COMMANDS = (
    "run", "serve", "demo", "status", "check", "prepare", "pause", "drain", "resume", "stop",
    "retry", "concurrency", "budget", "goal", "extend", "add", "adopt", "export", "report",
    "forecast", "notify-test", "simulate",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_its_exit_codes(
    longwatch: Longwatch, command: str
) -> None:
    told = longwatch(command, "--help")
    assert told.code == 0
    assert f"Example: longwatch {command}" in told.out
    assert "Exit codes: 0" in told.out


def test_the_exit_codes_of_run_are_all_listed(longwatch: Longwatch) -> None:
    text = " ".join(longwatch("run", "--help").out.split())
    assert "0 the run is finished, 1 it could not run (bad usage included)" in text
    assert "2 finished with failed samples, 3 stopped" in text


def test_the_faults_that_can_be_ordered_of_the_simulator_are_listed(longwatch: Longwatch) -> None:
    text = longwatch("simulate", "--help").out
    assert all(each in text for each in ("/sim/freeze", "/sim/unfreeze", "/sim/exit", "/sim/set"))


def test_every_flag_has_a_twin_in_the_environment() -> None:
    group = typer.main.get_command(make_application())
    commands = getattr(group, "commands")  # noqa: B009 - typer's own type does not show it
    assert set(COMMANDS) < set(commands)
    flags = [
        (command.name, flag)
        for command in commands.values()
        for flag in command.params
        if flag.param_type_name == "option" and flag.name != "help" and not flag.hidden
    ]
    assert len(flags) > 40
    bare = [pair for pair in flags if not str(pair[1].envvar).startswith("LONGWATCH_")]
    assert bare == []


def test_without_a_command_the_help_is_shown(longwatch: Longwatch) -> None:
    told = longwatch()
    assert "Usage: longwatch" in told.out
    for command in COMMANDS:
        assert f"  {command} " in told.out
    assert "  worker " not in told.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pauze",), "No such command 'pauze'. Did you mean 'pause'? See longwatch --help"),
        (("status", "--jsn"), "No such option: --jsn"),
        (("run", "--max-samples", "many"), "Invalid value for '--max-samples'"),
        (("run",), "--output-dir and --server-url missing"),
        (("run", "no-such.toml"), "cannot read the spec no-such.toml"),
        (("run", "no-such.toml", "--top-p", "0.9"), "--top-p cannot stand beside no-such.toml"),
        (("budget",), "Missing argument"),
        (("check", "no-such.toml"), "cannot read the spec no-such.toml"),
        (("pause",), "there is no ledger in"),
        (("export", "night", "somewhere"), "there is no ledger in"),
        (("worker", "--worker-id", "1", "--parent-pid", "1"), "there is no ledger in"),
    ],
)
def test_bad_usage_is_one_message_and_exit_code_1(
    longwatch: Longwatch, words: tuple[str, ...], message: str
) -> None:
    told = longwatch(*words)
    assert told.code == 1
    assert told.error.startswith("error: ")
    assert message in told.error
    assert told.error.count("\n") == 1
    assert told.out == ""


def test_a_bad_setting_is_named(longwatch: Longwatch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGWATCH_TICK_S", "fast")
    told = longwatch("status")
    assert told.code == 1
    assert "LONGWATCH_TICK_S" in told.error


def test_sec_04_a_bind_to_all_without_a_token_is_refused(
    longwatch: Longwatch, tmp_path: Path
) -> None:
    everywhere = "0.0.0.0"  # noqa: S104 - refused, which is what is tested
    told = longwatch("serve", "--host", everywhere)
    assert told.code == 1
    assert "no token is set" in told.error
    assert not (tmp_path / "home" / "service.lock").exists()


def test_looking_makes_no_home(longwatch: Longwatch, tmp_path: Path) -> None:
    assert longwatch("status").code == 0
    assert longwatch("status", "--json").out == '{"runs": []}\n'
    assert longwatch("status", "night").code == 1
    assert not (tmp_path / "home").exists()


def python(*words: str, **more: object) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(  # type: ignore[call-overload, no-any-return]  # keywords are named by the tests
        [sys.executable, "-m", "app", *words], timeout=60, check=False, **more
    )


def test_prc_02_an_output_that_nobody_reads_does_not_matter() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = python("status", stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert done.returncode == 0
    assert done.stderr == b""


def test_prc_02_closed_outputs_do_not_matter(tmp_path: Path) -> None:
    words = f"exec {sys.executable} -m app status --home {tmp_path / 'home'} >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", words], timeout=60, check=False).returncode == 0


def test_a_port_that_cannot_be_had_is_one_message() -> None:
    done = python("simulate", "--host", "192.0.2.1", stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert done.stderr.startswith(b"error: cannot simulate on 192.0.2.1:30000")


def test_ctrl_c_while_the_program_is_being_loaded_is_a_quiet_end(tmp_path: Path) -> None:
    """What is loaded early interrupts itself, as a person may in the first moment."""
    text = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**6): pass\n"
    (tmp_path / "typer.py").write_text(text)
    done = python("status", env={**os.environ, "PYTHONPATH": str(tmp_path)}, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (3, b"")
