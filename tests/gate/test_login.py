"""The login page, the cookie that it gives, and how often a wrong token may be tried."""

import re
from urllib.parse import quote, urlencode

import pytest

from app.core.states import RunState
from tests.gate.people import Answer, exchange, needs_root, request, stranger
from tests.gate.standing import TOKEN, Standing

FORM = "Content-Type: application/x-www-form-urlencoded"
BROWSER = "Accept: text/html"
WRONG = "wrong-wrong-wrong"
PAUSE = "/api/v1/runs/night/pause"


def log_in(door: Standing, *headers: str, **fields: str) -> Answer:
    """Send the form as the page does."""
    body = urlencode({"token": TOKEN, "name": "Ada", "next": "/", **fields})
    raw = request("/login", door.port, FORM, BROWSER, *(headers or (door.origin,)),
                  method="POST", body=body)  # fmt: skip
    return exchange(door.port, raw)


def cookie_of(answer: Answer) -> str:
    return "Cookie: " + answer.headers["set-cookie"].partition(";")[0]


def get(door: Standing, path: str, *headers: str) -> Answer:
    return exchange(door.port, request(path, door.port, *headers))


def test_the_page_explains_itself_and_shows_nothing_of_the_machine(shut: Standing) -> None:
    page = get(shut, "/login?next=/runs/7", BROWSER)
    assert page.status == 200
    assert 'type="password"' in page.text
    assert 'autocomplete="current-password"' in page.text
    assert 'value="operator"' in page.text
    assert 'name="next" value="/runs/7"' in page.text
    assert "LONGWATCH_TOKEN" in page.text
    assert str(shut.home.folder) not in page.text
    assert TOKEN not in page.text
    style = re.search(r'href="(/static/[^"]+)"', page.text)
    assert style is not None
    assert get(shut, style[1]).status == 200


def test_a_login_opens_the_page_under_the_name_given(shut: Standing) -> None:
    answer = log_in(shut, name="Ada", next="/runs/7?sort=eta")
    assert (answer.status, answer.headers["location"]) == (303, "/runs/7?sort=eta")
    flags = answer.headers["set-cookie"].split("; ")[1:]
    assert set(flags) == {"Path=/", "Max-Age=2592000", "HttpOnly", "SameSite=Strict"}
    assert TOKEN not in answer.headers["set-cookie"]
    seen = get(shut, "/runs/7", cookie_of(answer))
    assert seen.text == '{"who":"Ada (page)","session":true}'


def test_behind_https_the_cookie_stays_there(shut: Standing) -> None:
    answer = log_in(shut, f"Origin: https://127.0.0.1:{shut.port}")
    assert "; Secure" in answer.headers["set-cookie"]


def test_an_order_of_a_session_carries_its_name(locked: Standing) -> None:
    raw = request(PAUSE, locked.port, locked.origin, locked.cookie("Ada"),
                  "Content-Type: application/json", method="POST", body="{}")  # fmt: skip
    assert exchange(locked.port, raw).status == 200
    seen = get(locked, "/api/v1/runs/night/activity", locked.cookie())
    assert '"who":"Ada (page)"' in seen.text


def test_a_wrong_token_is_told_at_its_field_and_the_name_is_kept(locked: Standing) -> None:
    answer = log_in(locked, token=WRONG, name="Grace", next="/runs/7")
    assert answer.status == 401
    assert "set-cookie" not in answer.headers
    assert 'id="token-error"' in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert 'value="Grace"' in answer.text
    assert 'value="/runs/7"' in answer.text
    assert WRONG not in answer.text


@pytest.mark.parametrize("name", ["x" * 41, "a\u202eb", "a\x1b[31m", "a\x00"])
def test_a_name_that_cannot_be_shown_is_refused(shut: Standing, name: str) -> None:
    answer = log_in(shut, name=name)
    assert (answer.status, 'id="name-error"' in answer.text) == (422, True)
    assert "set-cookie" not in answer.headers


def test_without_a_name_it_is_the_operator(shut: Standing) -> None:
    seen = get(shut, "/runs/7", cookie_of(log_in(shut, name="  ")))
    assert '"operator (page)"' in seen.text


def test_a_name_is_text(locked: Standing) -> None:
    answer = log_in(locked, name="<b>&\"'", token=WRONG)
    assert "<b>" not in answer.text
    assert "&lt;b&gt;" in answer.text


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "evil",
     "/\r\nSet-Cookie: a=b", "", "javascript:alert(1)", "/login?next=/login", "/ü" + "x" * 3_000],
)  # fmt: skip
def test_a_login_leads_to_no_other_place(shut: Standing, wanted: str) -> None:
    assert log_in(shut, next=wanted).headers["location"] == "/"
    shown = get(shut, f"/login?next={quote(wanted, safe='')}", shut.cookie())
    assert (shown.status, shown.headers["location"]) == (303, "/")


def test_a_refused_address_that_looks_like_another_host_is_not_led_to(shut: Standing) -> None:
    refused = get(shut, "//evil.example/x", BROWSER)
    assert refused.headers["location"] == "/login?next=%2F"


@pytest.mark.parametrize(
    "header", ["HX-Request: true", "Accept: text/event-stream", "Accept: application/json"]
)
def test_what_is_no_page_gets_the_error_of_the_api(shut: Standing, header: str) -> None:
    accepted = () if header.startswith("Accept") else (BROWSER,)
    answer = get(shut, "/runs/7", header, *accepted)
    assert answer.status == 401
    assert '"no_token"' in answer.text
    assert get(shut, "/api/v1/runs", BROWSER).status == 401


def test_a_form_that_comes_after_the_session_leads_to_the_login(shut: Standing) -> None:
    raw = request("/runs/7/pause", shut.port, FORM, BROWSER, shut.origin,
                  f"Referer: http://127.0.0.1:{shut.port}/runs/7?range=24h",
                  method="POST", body="")  # fmt: skip
    answer = exchange(shut.port, raw)
    assert answer.status == 303
    assert answer.headers["location"] == "/login?next=%2Fruns%2F7%3Frange%3D24h"


def test_a_link_from_elsewhere_is_asked_once_more_for_its_cookie(shut: Standing) -> None:
    first = get(shut, "/login?next=%2Fruns%2F7", BROWSER, "Sec-Fetch-Site: cross-site")
    found = re.search(r'content="0;url=([^"]+)"', first.text)
    assert found is not None
    again = found[1].replace("&amp;", "&")
    second = get(shut, again, BROWSER, "Sec-Fetch-Site: cross-site")
    assert "refresh" not in second.text
    assert 'name="next" value="/runs/7"' in second.text
    assert get(shut, again, shut.cookie()).headers["location"] == "/runs/7"


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("Origin: http://evil.example",),
        ("Sec-Fetch-Site: none",),
        ("Sec-Fetch-Site: same-site",),
    ],
)
def test_a_login_comes_from_our_page(shut: Standing, headers: tuple[str, ...]) -> None:
    body = urlencode({"token": TOKEN, "name": "Ada"})
    raw = request("/login", shut.port, FORM, *headers, method="POST", body=body)
    answer = exchange(shut.port, raw)
    assert answer.status == 403
    assert "set-cookie" not in answer.headers


def test_a_logout_ends_the_session(shut: Standing) -> None:
    raw = request("/logout", shut.port, shut.origin, shut.cookie(), method="POST")
    answer = exchange(shut.port, raw)
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert get(shut, "/logout", shut.cookie()).status == 405
    assert get(shut, "/login", shut.cookie()).status == 303


def test_ten_wrong_tokens_a_minute(locked: Standing) -> None:
    for _ in range(10):
        assert log_in(locked, token=WRONG).status == 401
    late = log_in(locked)
    assert late.status == 429
    assert late.headers["retry-after"] == "60"
    assert "Try again in 60 seconds" in late.text
    locked.clock.ahead_s = 59.9
    assert log_in(locked).headers["retry-after"] == "1"
    locked.clock.ahead_s = 60.1
    assert log_in(locked).status == 303


def test_wrong_bearers_count_and_a_right_one_is_never_refused(locked: Standing) -> None:
    for _ in range(10):
        assert get(locked, "/api/v1/runs", "Authorization: Bearer wrong").status == 401
    late = get(locked, "/api/v1/runs", "Authorization: Bearer wrong")
    assert (late.status, late.headers["retry-after"]) == (429, "60")
    assert log_in(locked).status == 429
    assert get(locked, "/api/v1/runs", f"Authorization: Bearer {TOKEN}").status == 200
    assert get(locked, "/api/v1/runs", locked.cookie()).status == 200


def test_a_large_form_of_nobody_is_not_read(shut: Standing) -> None:
    assert log_in(shut, token="x" * 20_000).status == 413


@needs_root
def test_another_user_logs_in_with_the_token(own: Standing) -> None:
    body = urlencode({"token": TOKEN, "name": "Eve", "next": "/"})
    raw = request("/login", own.port, FORM, own.origin, method="POST", body=body)
    with stranger(own.port) as other:
        cookie = cookie_of(other.say(raw))
    with stranger(own.port) as other:
        assert '"Eve (page)"' in other.say(request("/runs/7", own.port, cookie)).text


def test_nothing_was_ordered_by_all_that(locked: Standing) -> None:
    log_in(locked, token=WRONG)
    assert locked.home.run.state is RunState.RUNNING
