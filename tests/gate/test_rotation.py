"""Tokens that change while a service lives, and sessions that are logged out of."""

import os
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from app.errors import InputError
from app.gate.ended import MAX_ENDED, Ended
from app.gate.opening import open_keys
from app.gate.token_file import TOKEN_NAME, VIEW_TOKEN_NAME, read_token, rotate
from app.ledger.lock import living_service
from app.settings import load_settings
from tests.gate.people import exchange, request
from tests.gate.standing import HandClock, Standing
from tests.gate.test_cases_sec import post
from tests.gate.test_login import get
from tests.process.run_process import ROOT, wait_for

NOW = HandClock().now()
LATER = int(NOW.timestamp()) + 100
GIVEN = "a-token-that-was-set"
HANG_S = 60.0


def test_a_new_file_is_taken_and_ends_what_was_opened_with_the_old_one(tmp_path: Path) -> None:
    keys, rotation = open_keys(tmp_path, load_settings(), "127.0.0.1", 1, HandClock())
    calls: list[str] = []
    keys.changed = lambda: calls.append("changed")
    cookie = f"longwatch_1={keys.sessions.value('Ada', LATER)}"
    assert rotation.changed() is None
    path = rotate(tmp_path, TOKEN_NAME)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    rotation.take(rotation.changed())
    assert keys.token == read_token(tmp_path)
    assert keys.sessions.name_in(cookie, NOW) is None
    assert calls == ["changed"]
    assert rotation.changed() is None


def test_a_view_token_comes_and_goes_with_its_file(tmp_path: Path) -> None:
    keys, rotation = open_keys(tmp_path, load_settings(), "127.0.0.1", 1, HandClock())
    assert keys.view_token is None
    path = rotate(tmp_path, VIEW_TOKEN_NAME)
    rotation.take(rotation.changed())
    assert keys.log_in(path.read_text().strip(), None)[0] == "looking"
    path.unlink()
    rotation.take(rotation.changed())
    assert keys.view_token is None


def test_the_door_stays_as_it_is_where_the_token_file_went_away(tmp_path: Path) -> None:
    keys, rotation = open_keys(tmp_path, load_settings(), "127.0.0.1", 1, HandClock())
    token = keys.token
    (tmp_path / TOKEN_NAME).unlink()
    rotation.take(rotation.changed())
    assert keys.token == token


def test_a_token_that_was_set_is_not_changed_by_a_file(tmp_path: Path) -> None:
    settings = load_settings(token=GIVEN)
    keys, rotation = open_keys(tmp_path, settings, "127.0.0.1", 1, HandClock())
    rotate(tmp_path, TOKEN_NAME)
    rotation.take(rotation.changed())
    assert keys.token == GIVEN


def test_sec_04_one_token_for_both_is_refused(tmp_path: Path) -> None:
    settings = load_settings(token=GIVEN, view_token=GIVEN)
    with pytest.raises(InputError, match="same as the token"):
        open_keys(tmp_path, settings, "127.0.0.1", 1, HandClock())
    keys, rotation = open_keys(tmp_path, load_settings(), "127.0.0.1", 1, HandClock())
    (tmp_path / VIEW_TOKEN_NAME).write_text(keys.token)
    assert rotation.changed() is None
    assert keys.view_token is None


def test_a_session_that_was_logged_out_of_is_dead_in_every_copy(locked: Standing) -> None:
    cookie, other = locked.cookie(), locked.cookie()
    assert get(locked, "/api/v1/runs", cookie).status == 200
    assert post(locked, "/logout", cookie, locked.origin, body="").status == 303
    assert get(locked, "/api/v1/runs", cookie).status == 401
    assert get(locked, "/api/v1/runs", other).status == 200


def test_the_end_of_a_session_outlives_the_service(tmp_path: Path) -> None:
    Ended(tmp_path).add("a-seal", LATER, NOW)
    again = Ended(tmp_path)
    assert again.holds("a-seal")
    assert not again.holds("another")
    stored = (tmp_path / "ended-sessions").read_text()
    assert "a-seal" not in stored
    again.add("third", LATER, HandClock(ahead_s=1_000).now())
    assert not Ended(tmp_path).holds("a-seal")  # it would have expired by itself


def test_ended_sessions_are_bounded_and_a_torn_line_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ended-sessions"
    path.write_text("".join(f"{LATER + n} {n:064x}\n" for n in range(MAX_ENDED)) + "17")
    ended = Ended(tmp_path)
    ended.add("newest", LATER + MAX_ENDED, NOW)
    assert len(path.read_text().splitlines()) == MAX_ENDED
    assert Ended(tmp_path).holds("newest")


def _status(address: str, token: str) -> int:
    asked = urllib.request.Request(  # noqa: S310 - our own service
        f"{address}/api/v1/runs", headers={"authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=HANG_S) as answer:  # noqa: S310 - likewise
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.slow
def test_a_living_service_takes_a_new_token_without_a_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    command = [sys.executable, "-m", "app"]
    there = {"cwd": ROOT, "env": {**os.environ, "LONGWATCH_HOME": str(home)}}
    serving = subprocess.Popen(
        [*command, "serve", "--port", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **there,  # type: ignore[call-overload]  # two plain options
    )
    try:
        wait_for(lambda: _address(home) or serving.poll() is not None, "a service", HANG_S)
        address, old = _address(home), read_token(home)
        assert old is not None
        assert _status(address, old) == 200
        for more in ([], ["--view"]):
            done = subprocess.run(
                [*command, "token", "rotate", *more],
                capture_output=True, text=True, timeout=HANG_S, check=False,
                **there,  # type: ignore[call-overload]  # likewise
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert "The service has taken it" in done.stdout
        new, view = read_token(home), read_token(home, VIEW_TOKEN_NAME)
        assert new is not None
        assert view is not None
        assert (_status(address, old), _status(address, new)) == (401, 200)
        port = int(address.rpartition(":")[2])
        raw = request("/api/v1/runs/1/pause", port, f"Authorization: Bearer {view}",
                      "Content-Type: application/json", method="POST", body="{}")  # fmt: skip
        assert exchange(port, raw).status == 403
        logs = "".join(path.read_text() for path in (home / "logs").glob("*") if path.is_file())
        assert not any(token in logs for token in (old, new, view))
    finally:
        serving.terminate()
        serving.wait(HANG_S)


def _address(home: Path) -> str:
    holder = living_service(home) if home.exists() else None
    return holder.address if holder else ""
