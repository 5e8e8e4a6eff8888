"""One run of a real command: what it gets, what its end means, and that it cannot stay."""

import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest

from app.notifying.command import Command
from tests.notifying.test_webhook import message
from tests.waiting import wait_until

TAKE = (
    "import json, os, sys; text = sys.stdin.read();"
    " json.dump({'input': json.loads(text), 'environment': dict(os.environ),"
    " 'open': sorted(os.listdir('/proc/self/fd')), 'session': os.getsid(0)},"
    " open(sys.argv[1], 'w'))"
)


def python(program: str, *words: str) -> str:
    quoted = [f"'{word}'" for word in words]
    return f'{sys.executable} -c "{program}" {" ".join(quoted)}'


async def test_it_gets_the_message_as_json_and_as_variables_and_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGWATCH_TOKEN", "a-token-of-the-service")
    monkeypatch.setenv("LONGWATCH_NOTIFY_URL", "https://hooks.example/a-secret")
    monkeypatch.setenv("OWN_KEY_OF_THE_COMMAND", "stays")
    out = tmp_path / "out"
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    try:
        reply = await Command(python(TAKE, str(out))).send(message(run="a'; rm -rf $HOME `x`"))
    finally:
        os.close(lock)
    assert (reply.is_ok, reply.said) == (True, "exit code 0")
    taken = json.loads(out.read_text())
    assert taken["input"]["id"] == "17"
    environment = taken["environment"]
    assert environment["LONGWATCH_EVENT"] == "begin"
    assert environment["LONGWATCH_EVENT_KIND"] == "stalled"
    assert environment["LONGWATCH_EVENT_RUN"] == "a'; rm -rf $HOME `x`"
    assert environment["LONGWATCH_EVENT_PARTITION"] == "B1_chat"
    assert environment["LONGWATCH_EVENT_SENTENCE"].startswith("64 requests")
    assert environment["LONGWATCH_EVENT_TEXT"].startswith("⚠ a'; rm -rf $HOME `x`, B1_chat:")
    assert environment["LONGWATCH_EVENT_ID"] == "17"
    assert environment["OWN_KEY_OF_THE_COMMAND"] == "stays"
    ours = [name for name in environment if name.startswith("LONGWATCH_")]
    assert all(name.startswith("LONGWATCH_EVENT") for name in ours)
    assert taken["session"] != os.getsid(0)
    assert len(taken["open"]) <= 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"{sys.executable} -c 'raise SystemExit(3)'", "exit code 3"),
        (f"{sys.executable} -c 'import os; os.kill(os.getpid(), 15)'", "killed by SIGTERM"),
        (f"{sys.executable} -c 'import os; os.kill(os.getpid(), 35)'", "killed by signal 35"),
        ("/no/such/command a-secret", "cannot be run: no such file or directory"),
        ("/etc/passwd", "cannot be run: permission denied"),
    ],
)
async def test_how_it_ended_is_told(words: str, said: str) -> None:
    reply = await Command(words).send(message())
    assert (reply.is_ok, reply.said) == (False, said)


async def test_one_that_does_not_read_its_input_is_no_failure() -> None:
    assert (await Command("/bin/true").send(message(sentence="x" * 60_000))).is_ok


async def test_one_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    out = tmp_path / "pids"
    script = f'sleep 600 & echo "$$ $!" > {out}; wait'
    reply = await Command(f"/bin/sh -c '{script}'", limit_s=1.5).send(message())
    assert reply.said == "killed: it took more than 1.5 s"
    for pid in out.read_text().split():
        await wait_until(partial(_is_gone, int(pid)), f"{pid} to be gone")


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_the_name_shows_no_argument() -> None:
    made = Command("/opt/tell.sh --key a-secret")
    assert made.name == "command tell.sh"
    assert "a-secret" not in made.name + repr(made)
