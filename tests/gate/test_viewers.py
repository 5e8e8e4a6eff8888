"""Who may only look: sees everything, changes nothing (sec-02, sec-03, sec-04 for that role)."""

import pytest

from app.errors import InputError
from app.gate.keys import Keys
from app.settings import load_settings
from tests.gate.people import Answer, exchange, request
from tests.gate.standing import TOKEN, VIEW_TOKEN, HandClock, Standing
from tests.gate.test_cases_sec import JSON_BODY, PAUSE, VERBS, post
from tests.gate.test_login import cookie_of, get, log_in

BEARER = f"Authorization: Bearer {VIEW_TOKEN}"
LOOKS = ("/api/v1/runs", "/api/v1/runs/night", "/api/v1/runs/night/activity", "/runs/7", "/metrics")
WAYS = ("bearer", "cookie")


def key(door: Standing, way: str) -> tuple[str, ...]:
    return (BEARER,) if way == "bearer" else (door.view_cookie(), door.origin)


def is_refused(answer: Answer) -> bool:
    return answer.status == 403 and '"code": "only_looking"' in answer.text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", LOOKS)
def test_who_looks_sees_everything(shut: Standing, path: str, way: str) -> None:
    assert get(shut, path, *key(shut, way)).status == 200


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", VERBS)
def test_who_looks_orders_nothing(quiet: Standing, verb: str, way: str) -> None:
    """Though the socket's owner might: the key that is shown decides."""
    answer = post(quiet, f"/api/v1/runs/night/{verb}", JSON_BODY, *key(quiet, way))
    assert is_refused(answer)
    assert "this key may only look" in answer.text
    assert str(quiet.home.run.state) == "running"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/api/v1/runs", "/runs/7/pause", "/notify-test", "/nowhere"])
def test_who_looks_changes_nothing_by_any_method(shut: Standing, path: str, method: str) -> None:
    assert is_refused(exchange(shut.port, request(path, shut.port, BEARER, method=method)))


def test_sec_02_a_foreign_name_stays_shut_to_who_looks(shut: Standing) -> None:
    for told in (BEARER, shut.view_cookie()):
        assert get(shut, "/api/v1/runs", f"Host: evil.example:{shut.port}", told).status == 421


@pytest.mark.parametrize("way", WAYS)
def test_sec_03_another_page_learns_nothing_of_the_key(shut: Standing, way: str) -> None:
    told = (JSON_BODY, "Origin: http://evil.example", *key(shut, way))
    answer = post(shut, PAUSE, *told)
    assert answer.status == 403
    assert "foreign_origin" in answer.text


def test_sec_03_another_site_does_not_look_with_its_visitors_key(shut: Standing) -> None:
    answer = get(shut, "/api/v1/runs", shut.view_cookie(), "Sec-Fetch-Site: cross-site")
    assert answer.status == 403


def test_sec_04_the_view_token_is_no_token_and_in_nothing(shut: Standing) -> None:
    answer = log_in(shut, token=VIEW_TOKEN, name="Vera")
    assert answer.status == 303
    cookie = cookie_of(answer)
    assert VIEW_TOKEN not in cookie + get(shut, "/login").text + repr(shut.keys)
    assert get(shut, "/runs/7", cookie).text == '{"who":"Vera (page)","session":true}'
    assert is_refused(post(shut, PAUSE, JSON_BODY, cookie, shut.origin))


def test_a_cookie_of_who_looks_is_no_operators(shut: Standing) -> None:
    """The same words under the other key are another seal."""
    cookie, now = shut.view_cookie().removeprefix("Cookie: "), shut.clock.now()
    assert shut.keys.sessions.name_in(cookie, now) is None
    assert shut.keys.view_sessions is not None
    assert shut.keys.view_sessions.name_in(cookie, now) == "Vera"
    same = Keys(VIEW_TOKEN, is_open_to_own_user=False, port=shut.port, clock=HandClock())
    assert same.sessions.name_in(cookie, now) is None  # not even with the same token


def test_who_looks_may_become_an_operator_and_leave(locked: Standing) -> None:
    cookie = locked.view_cookie()
    assert log_in(locked, cookie, locked.origin, token=TOKEN).status == 303
    assert post(locked, "/logout", cookie, locked.origin, body="").status == 303
    assert get(locked, "/api/v1/runs", cookie).status == 401


def test_without_a_view_token_nothing_is_one(shut: Standing) -> None:
    bare = Keys(TOKEN, is_open_to_own_user=False, port=1, clock=HandClock())
    for guess in ("", "None", VIEW_TOKEN):
        assert bare.log_in(guess, None)[0] == "wrong"


@pytest.mark.parametrize(("given", "is_taken"), [("", True), ("short", False), ("x" * 24, True)])
def test_sec_04_a_view_token_has_the_form_of_a_token(given: str, *, is_taken: bool) -> None:
    if is_taken:
        found = load_settings(view_token=given).view_token
        assert (found is None) == (not given)
        return
    with pytest.raises(InputError, match="LONGWATCH_VIEW_TOKEN") as caught:
        load_settings(view_token=given)
    assert given not in str(caught.value)
