"""The gate: who is let in, under which name, from which page (cases sec-02, sec-03, sec-04)."""

from pathlib import Path

import httpx
import pytest

from app.core.states import RunState
from app.errors import InputError
from app.gate import allowed_hosts, home_token
from app.gate.origin import MAX_BODY_BYTES
from app.settings import load_settings
from tests.api.conftest import PORT, TOKEN, Door
from tests.api.home import Home

PAUSE = "/api/v1/runs/night/pause"


@pytest.mark.parametrize(
    "host",
    [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}", "LOCALHOST:9999", "localhost"],
)
async def test_sec_02_own_names_pass(client: httpx.AsyncClient, host: str) -> None:
    answer = await client.get("/api/v1/runs", headers={"host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        f"evil.example:{PORT}",
        f"127.0.0.1.evil.example:{PORT}",
        "localhost.",
        "localhost:99999999",
        "localhost@evil.example",
        "localhost:1,evil.example",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/runs", "/api/v1/openapi.json"])
async def test_sec_02_foreign_host_is_refused_for_every_route(
    client: httpx.AsyncClient, host: str, path: str
) -> None:
    answer = await client.get(path, headers={"host": host})
    assert answer.status_code == 421
    assert answer.json()["error"]["code"] == "foreign_host"


async def test_sec_02_foreign_host_changes_nothing(client: httpx.AsyncClient, home: Home) -> None:
    headers = {"host": f"evil.example:{PORT}", "origin": f"http://evil.example:{PORT}"}
    answer = await client.post(PAUSE, json={}, headers=headers)
    assert answer.status_code == 421
    assert home.run.state is RunState.RUNNING


async def test_sec_02_request_without_host_is_refused(client: httpx.AsyncClient) -> None:
    request = client.build_request("GET", "/api/v1/runs")
    del request.headers["host"]
    answer = await client.send(request)
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example", "content-type": "text/plain"},
        {"origin": "http://evil.example", "content-type": "application/x-www-form-urlencoded"},
    ],
)
async def test_sec_03_other_pages_change_nothing(
    client: httpx.AsyncClient, home: Home, headers: dict[str, str]
) -> None:
    answer = await client.post(PAUSE, content=b"{}", headers=headers)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert home.run.state is RunState.RUNNING


async def test_sec_03_text_body_is_no_order(client: httpx.AsyncClient, home: Home) -> None:
    answer = await client.post(PAUSE, content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 422
    assert home.run.state is RunState.RUNNING


async def test_sec_03_own_page_may(client: httpx.AsyncClient, home: Home) -> None:
    headers = {"origin": f"http://127.0.0.1:{PORT}", "sec-fetch-site": "same-origin"}
    answer = await client.post(PAUSE, json={}, headers=headers)
    assert answer.status_code == 200
    assert home.run.state is RunState.PAUSED


@pytest.mark.parametrize(
    "verb", ["pause", "drain", "resume", "stop", "retry", "budget", "concurrency", "goal"]
)
async def test_sec_03_get_never_orders(client: httpx.AsyncClient, home: Home, verb: str) -> None:
    answer = await client.get(f"/api/v1/runs/night/{verb}")
    assert answer.status_code == 405
    assert home.run.state is RunState.RUNNING


async def test_sec_03_preflight_of_another_page_gets_no_leave(client: httpx.AsyncClient) -> None:
    answer = await client.options(PAUSE, headers={"origin": "http://evil.example"})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/", "/api/v1/runs", "/api/v1/openapi.json", "/metrics", "/nowhere"]
)
@pytest.mark.parametrize(
    "given", [None, "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer", f"Bearer {TOKEN}x"]
)
async def test_sec_04_without_the_token_nothing_is_told(
    anybody: httpx.AsyncClient, path: str, given: str | None
) -> None:
    headers = {} if given is None else {"authorization": given}
    answer = await anybody.get(path, headers=headers)
    assert answer.status_code == 401
    assert "night" not in answer.text
    assert TOKEN not in answer.text


async def test_sec_04_health_is_open_and_tells_nothing_of_runs(anybody: httpx.AsyncClient) -> None:
    answer = await anybody.get("/healthz")
    assert answer.json() == {"status": "ok"}


async def test_answers_carry_the_security_headers(client: httpx.AsyncClient) -> None:
    for path in ("/healthz", "/api/v1/runs", "/nowhere"):
        headers = (await client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["cache-control"] == "no-store"


async def test_a_body_that_is_too_large_is_refused_unread(client: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/json", "content-length": str(MAX_BODY_BYTES + 1)}
    answer = await client.post("/api/v1/runs", content=b"{}", headers=headers)
    assert answer.status_code == 413


async def test_a_surprise_shows_an_id_and_no_trace(
    client: httpx.AsyncClient, door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    door.settings = None  # type: ignore[assignment]  # what only a bug would do
    answer = await client.get("/api/v1/runs/night")
    assert answer.status_code == 500
    message = answer.json()["error"]["message"]
    assert message.startswith("internal error ")
    assert "AttributeError" not in answer.text
    assert message.split()[-1] in caplog.text
    assert "AttributeError" in caplog.text


def test_the_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    first = home_token(tmp_path)
    assert len(first) >= 32
    assert home_token(tmp_path) == first
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_a_token_file_that_others_can_read_is_closed(tmp_path: Path) -> None:
    token = home_token(tmp_path)
    (tmp_path / "token").chmod(0o644)
    assert home_token(tmp_path) == token
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_a_token_file_that_was_cut_short_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc")
    token = home_token(tmp_path)
    assert len(token) >= 32
    assert home_token(tmp_path) == token


def test_a_bound_address_is_one_of_the_names_with_its_port() -> None:
    assert allowed_hosts("192.0.2.7", 80).allows("192.0.2.7:80")
    assert not allowed_hosts("192.0.2.7", 80).allows("192.0.2.7:81")
    assert not allowed_hosts("192.0.2.7", 80).allows("192.0.2.7")
    assert allowed_hosts("2001:db8::1", 80).allows("[2001:db8::1]:80")
    everywhere = "0.0.0.0"  # noqa: S104 - asked about, not bound to
    assert not allowed_hosts(everywhere, 80).allows(f"{everywhere}:80")


def test_further_names_are_taken_with_their_port_or_any() -> None:
    hosts = allowed_hosts("127.0.0.1", 80, "HeadNode, proxy.example:8443,[2001:db8::1]")
    assert all(hosts.allows(one) for one in ("headnode", "headnode:9", "proxy.example:8443"))
    assert all(hosts.allows(one) for one in ("[2001:db8::1]:7", "localhost:9"))
    assert not any(hosts.allows(one) for one in ("proxy.example", "proxy.example:1", "node"))
    assert not any(hosts.is_local(one) for one in ("headnode", "proxy.example:8443"))


@pytest.mark.parametrize("given", ["*", "*.example", "http://headnode", "a b", "-x", "node:http"])
def test_a_further_name_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="LONGWATCH_ALLOWED_HOSTS"):
        load_settings(allowed_hosts=given)


@pytest.mark.parametrize("given", ["short", "x" * 15, "a token with spaces in it", "töken" * 5])
def test_sec_04_a_token_that_is_easily_found_is_refused_with_words(given: str) -> None:
    with pytest.raises(InputError, match="at least 16") as told:
        load_settings(token=given)
    assert given not in str(told.value)


@pytest.mark.parametrize("given", ["", "  "])
def test_sec_04_an_empty_token_is_none(given: str) -> None:
    assert load_settings(token=given).token is None
