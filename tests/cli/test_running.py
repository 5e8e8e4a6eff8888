"""`run`, `demo` and `simulate` as processes: exit codes, signals, lost terminals, going on."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.cli.demo_prompts import PARTITIONS, write_prompts
from app.core.types import RunId
from app.ledger import runs
from app.ledger.db import Ledger
from app.simulator.answers import LengthModel
from app.simulator.server import SimulatorThread

HANG_S = 90


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(port=0, instant=True, lengths=LengthModel(mean_tokens=30)) as server:
        yield server


def write_rows(folder: Path, name: str, texts: list[str]) -> None:
    path = folder / name / "prompts.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": f"a{n}", "messages": [{"role": "user", "content": text}]}
        for n, text in enumerate(texts)
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


def words(tmp_path: Path, url: str, *more: str) -> list[str]:
    """Return the command of a run over everything in this test's folder."""
    return [
        sys.executable, "-m", "app", "run", "--home", str(tmp_path / "home"), "--port", "0",
        "--output-dir", str(tmp_path / "out"), "--server-url", url, *more,
    ]  # fmt: skip


def answers(tmp_path: Path, name: str) -> list[str]:
    path = tmp_path / "out" / name / "responses.jsonl"
    return [json.loads(line)["id"] for line in path.read_bytes().splitlines()]


def start(command: list[str], **more: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)


def read_until(process: "subprocess.Popen[str]", sign: str) -> str:
    """Read what the process prints until a line holds the sign."""
    told = ""
    assert process.stdout is not None
    for line in process.stdout:
        told += line
        if sign in line:
            return told
    raise AssertionError(f"ended with {process.wait()} before {sign!r}:\n{told}")


def n_running(tmp_path: Path) -> int:
    ledger = Ledger(tmp_path / "home" / "ledger.db")
    try:
        partitions = runs.partitions_of(ledger, RunId(1))
    finally:
        ledger.close()
    return sum(each.counts.running for each in partitions)


def until(holds: Callable[[], bool]) -> None:
    """Return as soon as it holds, bounded."""
    for _ in range(HANG_S * 50):
        if holds():
            return
        threading.Event().wait(0.02)
    raise AssertionError("waited in vain")


def test_a_run_in_the_foreground_ends_with_0(tmp_path: Path, simulator: SimulatorThread) -> None:
    write_rows(tmp_path / "out", "B1_x", ["hello"] * 12)
    done = subprocess.run(
        words(tmp_path, simulator.url), capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Finished: 12 answers in" in done.stdout
    assert answers(tmp_path, "B1_x") == [f"a{n}" for n in range(12)]
    assert (tmp_path / "home" / "token").stat().st_mode & 0o777 == 0o600
    token = (tmp_path / "home" / "token").read_text().strip()
    logged = "".join(path.read_text() for path in (tmp_path / "home" / "logs").iterdir())
    assert token not in logged
    assert "hello" not in logged


def test_failed_samples_are_exit_code_2(tmp_path: Path, simulator: SimulatorThread) -> None:
    write_rows(tmp_path / "out", "B1_x", ["hello", "@@bad"])
    simulator.script({"@@bad": [{"json": [400, {"detail": "no"}]}]})
    done = subprocess.run(
        words(tmp_path, simulator.url, "--max-attempts", "1"),
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Finished with 1 failed sample" in done.stdout


def test_what_cannot_run_is_exit_code_1_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    done = subprocess.run(
        words(tmp_path, "http://127.0.0.1:9", "--partition", "B1_x"),
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "B1_x" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_prc_01_a_signal_stops_as_a_pause_and_the_same_words_go_on(
    tmp_path: Path, simulator: SimulatorThread, number: signal.Signals
) -> None:
    write_rows(tmp_path / "out", "B1_x", [f"n{n}" for n in range(8)])
    simulator.script({"*": ["ok delay=3600"]})
    command = words(tmp_path, simulator.url)
    process = start(command)
    read_until(process, 'Run 1 "out"')
    until(lambda: n_running(tmp_path) > 0)
    process.send_signal(number)
    rest, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 3
    assert "Stopped. Go on with: longwatch run" in rest
    assert n_running(tmp_path) == 0
    simulator.script({"*": ["ok"]})
    again = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert answers(tmp_path, "B1_x") == [f"a{n}" for n in range(8)]


def test_prc_02_a_hangup_and_a_lost_output_do_not_end_the_run(
    tmp_path: Path, simulator: SimulatorThread
) -> None:
    write_rows(tmp_path / "out", "B1_x", [f"n{n}" for n in range(20)])
    process = start(words(tmp_path, simulator.url), start_new_session=True)
    read_until(process, "Longwatch serves")
    os.killpg(process.pid, signal.SIGHUP)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(HANG_S) == 0
    assert len(answers(tmp_path, "B1_x")) == 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_run_that_is_stopped_while_it_waits_leaves_no_home(
    tmp_path: Path, number: signal.Signals
) -> None:
    write_rows(tmp_path / "out", "B1_x", ["n0"])
    process = start(words(tmp_path, "http://127.0.0.1:9"))
    read_until(process, "waiting for http://127.0.0.1:9")
    process.send_signal(number)
    rest, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 3
    assert "Stopped. Go on with: longwatch run" in rest
    assert not (tmp_path / "home").exists()


def test_the_demos_server_ends_with_whoever_started_it() -> None:
    command = [sys.executable, "-m", "app", "simulate", "--port", "0", "--until-input-ends"]
    process = start(command, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
    process.communicate(timeout=HANG_S)
    assert process.returncode == 0


def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app", "demo", "--home", str(tmp_path / "home"), "--port", "0",
         "--prompts", "2", "--time-factor", "200"],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 times as fast as a real one" in done.stdout
    assert "Finished: 16 answers" in done.stdout


def test_demo_prompts_are_the_same_each_time_and_all_different(tmp_path: Path) -> None:
    write_prompts(tmp_path / "one", 400)
    write_prompts(tmp_path / "two", 400)
    for name, _, _ in PARTITIONS:
        first = (tmp_path / "one" / name / "prompts.jsonl").read_bytes()
        assert first == (tmp_path / "two" / name / "prompts.jsonl").read_bytes()
        texts = [json.loads(line)["messages"][0]["content"] for line in first.splitlines()]
        assert len(set(texts)) == 400
