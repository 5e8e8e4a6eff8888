"""Sessions and attempts by themselves: what a cookie proves, and how long knocking is counted."""

import doctest
from datetime import timedelta

import pytest

import app.gate.hosts
import app.gate.refusals
import app.gate.sessions
from app.gate import Keys
from app.gate.attempts import MAX_BY_ALL, MAX_BY_ONE, Attempts
from app.gate.sessions import Sessions
from tests.gate.standing import TOKEN, HandClock

CLOCK = HandClock()
NOW = CLOCK.now()
LATER = int(NOW.timestamp()) + 100


def cookie(sessions: Sessions, name: str = "Ada", expires: int = LATER) -> str:
    return f"{sessions.cookie_name}={sessions.value(name, expires)}"


@pytest.mark.parametrize("name", ["Ada", "Ada Lovelace", "Žofie", "名前", "a.b=c;d", "x" * 40])
def test_a_session_gives_the_name_back(name: str) -> None:
    sessions = Sessions(TOKEN, 8400)
    assert sessions.name_in(cookie(sessions, name), NOW) == name


def test_the_cookies_of_other_programs_are_no_matter() -> None:
    sessions = Sessions(TOKEN, 8400)
    around = f'_xsrf=2|a"b; bad name={{]; {cookie(sessions)}; longwatch_8401=1.2.3.4; x'
    assert sessions.name_in(around, NOW) == "Ada"


def test_an_old_cookie_of_the_same_name_is_no_matter() -> None:
    sessions = Sessions(TOKEN, 8400)
    assert sessions.name_in(f"longwatch_8400=old; {cookie(sessions)}", NOW) == "Ada"


def test_a_session_ends_with_its_time() -> None:
    sessions = Sessions(TOKEN, 8400)
    value = cookie(sessions)
    assert sessions.name_in(value, NOW + timedelta(seconds=99)) == "Ada"
    assert sessions.name_in(value, NOW + timedelta(seconds=101)) is None


def test_a_new_token_ends_every_session() -> None:
    assert Sessions(TOKEN + "x", 8400).name_in(cookie(Sessions(TOKEN, 8400)), NOW) is None


def test_a_cookie_that_was_changed_anywhere_opens_nothing() -> None:
    sessions = Sessions(TOKEN, 8400)
    name, _, value = cookie(sessions).partition("=")
    for at, old in enumerate(value):
        for new in ("0" if old != "0" else "1", "A" if old != "A" else "B", ".", "é"):
            changed = value[:at] + new + value[at + 1 :]
            assert changed == value or sessions.name_in(f"{name}={changed}", NOW) is None
    for odd in ("", ".", "...", "1.x.QQ.", value + ".", value[:-1], value + "0", value.upper()):
        assert sessions.name_in(f"{name}={odd}", NOW) is None


def test_a_cookie_is_not_for_the_service_beside() -> None:
    assert Sessions(TOKEN, 8401).name_in(cookie(Sessions(TOKEN, 8400)), NOW) is None


def test_the_token_is_in_no_cookie_and_no_repr() -> None:
    keys = Keys(TOKEN, is_open_to_own_user=True, port=8400, clock=CLOCK)
    assert TOKEN not in keys.sessions.cookie("Ada", NOW, is_https=True)
    assert TOKEN not in repr(keys)


def test_attempts_of_one_and_of_all() -> None:
    clock = HandClock()
    attempts = Attempts(clock)
    for n in range(MAX_BY_ALL):
        assert attempts.wait_s(f"192.0.2.{n // (MAX_BY_ONE - 1)}") == 0
        attempts.note(f"192.0.2.{n // (MAX_BY_ONE - 1)}")
        clock.ahead_s += 0.1
    assert attempts.wait_s("203.0.113.7") == 50
    clock.ahead_s = 60.05
    assert attempts.wait_s("203.0.113.7") == 0


def test_attempts_are_bounded() -> None:
    attempts = Attempts(HandClock())
    for n in range(10_000):
        attempts.note(f"192.0.2.{n % 250}")
    assert len(attempts._wrong) == MAX_BY_ALL


def test_the_attempts_of_one_are_the_latest() -> None:
    clock = HandClock()
    attempts = Attempts(clock)
    for _ in range(MAX_BY_ONE):
        attempts.note("192.0.2.1")
        clock.ahead_s += 1
    assert attempts.wait_s("192.0.2.1") == 50
    assert attempts.wait_s("192.0.2.2") == 0


@pytest.mark.parametrize("module", [app.gate.hosts, app.gate.refusals, app.gate.sessions])
def test_the_examples_are_true(module: object) -> None:
    outcome = doctest.testmod(module)  # type: ignore[arg-type]  # modules have no type of their own
    assert outcome.attempted > 0
    assert outcome.failed == 0
