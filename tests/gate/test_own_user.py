"""No login for the service's own user, none at all for the others of the machine."""

import json
import socket
from http.client import HTTPConnection

import pytest

from app.core.states import RunState
from tests.gate.people import exchange, needs_root, request, stranger
from tests.gate.standing import TOKEN, Standing

PAUSE = "/api/v1/runs/night/pause"
BROWSER = "Accept: text/html,application/xhtml+xml"


def test_the_own_user_needs_no_login(quiet: Standing) -> None:
    answer = exchange(quiet.port, request("/runs/7", quiet.port))
    assert answer.status == 200
    assert json.loads(answer.text) == {"who": "operator (API)", "session": False}


def test_the_own_user_s_browser_is_told_apart(quiet: Standing) -> None:
    answer = exchange(quiet.port, request("/runs/7", quiet.port, "Sec-Fetch-Site: none"))
    assert json.loads(answer.text)["who"] == "operator (page)"


def test_the_own_user_may_order_from_the_page_alone(own: Standing) -> None:
    without = exchange(own.port, request(PAUSE, own.port, "Content-Type: application/json",
                                         method="POST", body="{}"))  # fmt: skip
    assert (without.status, "no_origin" in without.text) == (403, True)
    assert str(own.home.run.state) == "running"
    of_page = request(PAUSE, own.port, own.origin, "Content-Type: application/json",
                      method="POST", body="{}")  # fmt: skip
    assert exchange(own.port, of_page).status == 200
    assert str(own.home.run.state) == "paused"


@needs_root
def test_another_user_of_the_machine_gets_the_login_page(quiet: Standing) -> None:
    with stranger(quiet.port) as other:
        answer = other.say(request("/runs/7?sort=eta", quiet.port, BROWSER))
    assert answer.status == 303
    assert answer.headers["location"] == "/login?next=%2Fruns%2F7%3Fsort%3Deta"
    with stranger(quiet.port) as other:
        assert other.say(request("/login", quiet.port, BROWSER)).status == 200


@needs_root
def test_another_user_of_the_machine_sees_and_stops_nothing(own: Standing) -> None:
    order = request(PAUSE, own.port, own.origin, "Content-Type: application/json",
                    method="POST", body="{}")  # fmt: skip
    for raw in (order, request("/api/v1/runs", own.port), request("/metrics", own.port)):
        with stranger(own.port) as other:
            answer = other.say(raw)
        assert answer.status == 401
        assert "night" not in answer.text
    assert own.home.run.state is RunState.RUNNING


@needs_root
def test_another_user_with_the_token_may(quiet: Standing) -> None:
    with stranger(quiet.port) as other:
        raw = request("/api/v1/runs", quiet.port, f"Authorization: Bearer {TOKEN}")
        assert other.say(raw).status == 200


@needs_root
def test_another_user_does_not_become_us_by_a_header(quiet: Standing) -> None:
    """The connection of ours that it names is a real one."""
    with socket.create_connection(("127.0.0.1", quiet.port)) as ours:
        port = ours.getsockname()[1]
        with stranger(quiet.port) as other:
            answer = other.say(
                request("/api/v1/runs", quiet.port, f"X-Forwarded-For: 127.0.0.1:{port}")
            )
    assert answer.status == 401


@pytest.mark.parametrize(
    "header",
    ["X-Forwarded-For: 203.0.113.7", "Forwarded: for=203.0.113.7", "X-Real-IP: 203.0.113.7",
     "Via: 1.1 proxy", "X-Forwarded-Host: proxy.example"],
)  # fmt: skip
def test_who_comes_through_a_proxy_is_not_its_owner(quiet: Standing, header: str) -> None:
    assert exchange(quiet.port, request("/api/v1/runs", quiet.port, header)).status == 401


def test_who_comes_under_a_name_of_the_network_is_not_known_by_the_socket(quiet: Standing) -> None:
    """A name that was allowed is one that others use, through a proxy that may say nothing."""
    assert exchange(quiet.port, request("/api/v1/runs", quiet.port, "Host: headnode")).status == 401
    assert (
        exchange(quiet.port, request("/api/v1/runs", quiet.port, "Host: localhost")).status == 200
    )


def test_every_request_of_a_connection_is_let_in(quiet: Standing) -> None:
    client = HTTPConnection("127.0.0.1", quiet.port, timeout=30)
    for _ in range(3):
        client.request("GET", "/runs/7")
        answer = client.getresponse()
        assert (answer.status, answer.will_close) == (200, False)
        answer.read()
    client.close()


def test_the_own_user_needs_the_token_where_one_was_set(shut: Standing) -> None:
    assert exchange(shut.port, request("/api/v1/runs", shut.port)).status == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_foreign_page_loads_nothing_in_the_name_of_its_visitor(
    quiet: Standing, site: str
) -> None:
    told = ("Sec-Fetch-Site: " + site, "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image")
    assert exchange(quiet.port, request("/runs/7", quiet.port, *told)).status == 403
    framed = ("Sec-Fetch-Site: " + site, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe")
    assert exchange(quiet.port, request("/runs/7", quiet.port, *framed)).status == 403
    link = ("Sec-Fetch-Site: " + site, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
    assert exchange(quiet.port, request("/runs/7", quiet.port, *link)).status == 200
