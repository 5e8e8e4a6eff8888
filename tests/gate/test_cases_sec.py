"""Cases sec-02 to sec-05 over real sockets: what stands between a page and the people outside."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.ledger.lock import living_service
from app.web.assets import own_assets
from tests.gate.people import Answer, exchange, request, stranger
from tests.gate.standing import TOKEN, Standing
from tests.process.run_process import ROOT, wait_for

BEARER = f"Authorization: Bearer {TOKEN}"
VERBS = ("pause", "drain", "resume", "stop", "retry", "budget", "concurrency", "goal")
PAUSE = "/api/v1/runs/night/pause"
JSON_BODY = "Content-Type: application/json"
HANG_S = 60.0


def post(door: Standing, path: str, *headers: str, body: str = "{}") -> Answer:
    return exchange(door.port, request(path, door.port, *headers, method="POST", body=body))


# -- sec-02 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "[::1]:{}", "localhost:9999"])
def test_sec_02_own_names_pass(quiet: Standing, host: str) -> None:
    raw = request("/runs/7", quiet.port, f"Host: {host.format(quiet.port)}")
    assert exchange(quiet.port, raw).status == 200


@pytest.mark.parametrize("path", ["/", "/login", "/healthz", "/api/v1/runs", "/static/app.css"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_sec_02_a_foreign_name_passes_nowhere(quiet: Standing, method: str, path: str) -> None:
    """With everything that would open the door under our quiet name."""
    told = (f"Host: evil.example:{quiet.port}", f"Origin: http://evil.example:{quiet.port}", BEARER)
    answer = exchange(quiet.port, request(path, quiet.port, *told, quiet.cookie(), method=method))
    assert answer.status == 421


def test_sec_02_a_foreign_name_changes_nothing(quiet: Standing) -> None:
    told = (f"Host: evil.example:{quiet.port}", f"Origin: http://evil.example:{quiet.port}")
    assert post(quiet, PAUSE, *told, JSON_BODY).status == 421
    assert str(quiet.home.run.state) == "running"


@pytest.mark.parametrize(
    "head",
    [
        "GET / HTTP/1.0",
        "GET / HTTP/1.1\r\nConnection: close",
        "GET / HTTP/1.0\r\nHost: localhost\r\nHost: evil.example",
    ],
)
def test_sec_02_without_one_host_nothing_is_answered(quiet: Standing, head: str) -> None:
    assert exchange(quiet.port, f"{head}\r\n\r\n".encode()).status == 400


def test_sec_02_a_name_that_was_allowed_passes_and_wants_a_login(
    shut: Standing, own: Standing
) -> None:
    for host, status in (("headnode:1", 303), ("proxy.example:443", 303), ("proxy.example", 421)):
        told = (f"Host: {host}", "Accept: text/html")
        assert exchange(shut.port, request("/runs/7", shut.port, *told)).status == status


# -- sec-03 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["bearer", "cookie", "own user"])
@pytest.mark.parametrize(
    "told",
    [
        ("Content-Type: text/plain", "Origin: http://evil.example"),
        ("Content-Type: application/x-www-form-urlencoded", "Origin: http://evil.example"),
        (JSON_BODY, "Origin: null"),
        (JSON_BODY, "Origin: http://127.0.0.1:1"),
        (JSON_BODY, "Sec-Fetch-Site: cross-site"),
        (JSON_BODY, "Sec-Fetch-Site: same-site"),
        (JSON_BODY, "Sec-Fetch-Site: same-origin", "Origin: http://evil.example"),
    ],
)
def test_sec_03_other_pages_change_nothing(
    quiet: Standing, way: str, told: tuple[str, ...]
) -> None:
    key = {"bearer": BEARER, "cookie": quiet.cookie(), "own user": "X-Nothing: 1"}[way]
    answer = post(quiet, PAUSE, *told, key)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers
    assert str(quiet.home.run.state) == "running"


@pytest.mark.parametrize("told", [(), ("Sec-Fetch-Site: none",)])
@pytest.mark.parametrize("with_cookie", [True, False])
def test_sec_03_without_a_token_the_page_must_prove_itself(
    quiet: Standing, told: tuple[str, ...], with_cookie: bool
) -> None:
    key = quiet.cookie() if with_cookie else "X-Nothing: 1"
    assert post(quiet, PAUSE, JSON_BODY, key, *told).status == 403
    assert str(quiet.home.run.state) == "running"


@pytest.mark.parametrize("proof", ["Origin: http://127.0.0.1:{}", "Sec-Fetch-Site: same-origin"])
def test_sec_03_the_own_page_may(own: Standing, proof: str) -> None:
    assert post(own, PAUSE, JSON_BODY, own.cookie(), proof.format(own.port)).status == 200
    assert str(own.home.run.state) == "paused"


def test_sec_03_the_own_page_may_through_another_port(own: Standing) -> None:
    """As `ssh -L 9000:localhost:8400` shows it."""
    told = ("Host: localhost:9000", "Origin: http://localhost:9000")
    assert post(own, PAUSE, JSON_BODY, *told).status == 200


def test_sec_03_a_script_with_the_token_needs_no_proof(own: Standing) -> None:
    assert post(own, PAUSE, JSON_BODY, BEARER).status == 200


@pytest.mark.parametrize("verb", VERBS)
def test_sec_03_get_never_orders(quiet: Standing, verb: str) -> None:
    answer = exchange(quiet.port, request(f"/api/v1/runs/night/{verb}", quiet.port))
    assert answer.status in (404, 405)
    assert str(quiet.home.run.state) == "running"


def test_sec_03_no_other_origin_is_ever_allowed(quiet: Standing) -> None:
    told = ("Origin: http://evil.example", "Access-Control-Request-Method: POST")
    for method, path in (("OPTIONS", PAUSE), ("GET", "/api/v1/runs"), ("OPTIONS", "/login")):
        answer = exchange(quiet.port, request(path, quiet.port, *told, method=method))
        assert not [name for name in answer.headers if name.startswith("access-control")]


# -- sec-04 -------------------------------------------------------------------------------------

EVERYWHERE = "0.0.0.0"  # noqa: S104 - the case is about it; it lives for the test alone


@contextmanager
def served(home: Path, host: str, token: str) -> Iterator[int]:
    """Serve a home as a process of its own; gives its port."""
    command = [sys.executable, "-m", "app", "serve", "--home", str(home), "--host", host]
    with (home.parent / "out.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--port", "0"],
            cwd=ROOT,
            stdout=log,
            stderr=log,
            env={**os.environ, "LONGWATCH_TOKEN": token},
        )
    try:
        wait_for(lambda: _port(home) or process.poll() is not None, "a service", HANG_S)
        port = _port(home)
        assert port, (home.parent / "out.log").read_text()
        yield port
    finally:
        process.terminate()
        process.wait(HANG_S)


def _port(home: Path) -> int:
    holder = living_service(home) if home.exists() else None
    return int(holder.address.rpartition(":")[2]) if holder and holder.address else 0


def test_sec_04_open_to_the_network_without_a_token_does_not_start(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "LONGWATCH_TOKEN": ""}
    command = [sys.executable, "-m", "app", "serve", "--host", EVERYWHERE, "--port", str(port)]
    done = subprocess.run(
        [*command, "--home", str(tmp_path / "home")],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "no token is set" in done.stderr
    assert not (tmp_path / "home").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_sec_04_open_to_the_network_with_a_token(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with served(home, EVERYWHERE, TOKEN) as port:
        for path in ("/", "/runs/1", "/runs/1/live", "/api/v1/runs", "/metrics", "/nowhere"):
            answer = exchange(port, request(path, port))
            assert answer.status == 401, path
        page = exchange(port, request("/runs/1", port, "Accept: text/html"))
        assert (page.status, page.headers["location"]) == (303, "/login?next=%2Fruns%2F1")
        assert exchange(port, request("/healthz", port)).text == '{"status":"ok"}'
        assert exchange(port, request("/api/v1/runs", port, BEARER)).status == 200
        wrong = exchange(port, request("/api/v1/runs", port, "Authorization: Bearer not-it-at-all"))
        assert wrong.status == 401
        assert exchange(port, request(f"/api/v1/runs?token={TOKEN}", port)).status == 401
    logs = [path for path in [*home.rglob("*.log*"), tmp_path / "out.log"] if path.is_file()]
    assert len(logs) >= 2
    for log in logs:
        assert TOKEN not in log.read_text()
        assert "not-it-at-all" not in log.read_text()


@pytest.mark.parametrize(("token", "status"), [("", 200), (TOKEN, 401)])
def test_sec_04_on_loopback_the_own_user_needs_no_login_unless_a_token_is_set(
    tmp_path: Path, token: str, status: int
) -> None:
    with served(tmp_path / "home", "127.0.0.1", token) as port:
        assert exchange(port, request("/api/v1/runs", port)).status == status
        if not token and os.geteuid() == 0:
            with stranger(port) as other:
                assert other.say(request("/api/v1/runs", port)).status == 401


def test_sec_04_no_page_holds_the_token(quiet: Standing) -> None:
    for path in ("/login", "/runs/7", "/api/v1/runs/night", "/api/v1/openapi.json", "/broken"):
        for accept in ("text/html", "*/*"):
            answer = exchange(quiet.port, request(path, quiet.port, f"Accept: {accept}"))
            assert TOKEN not in answer.text + str(answer.headers)


# -- sec-05: nothing is offered by a path; these are the addresses that take one -----------------


@pytest.mark.parametrize("family", ["/static/", "/assets/", "/api/v1/runs/", "/runs/", "/"])
@pytest.mark.parametrize(
    "words",
    [
        "../../../../../../etc/passwd",
        "..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "..%5c..%5c..%5cetc%5cpasswd",
        "..%252f..%252f..%252fetc%252fpasswd",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "%00/etc/passwd",
        "%2e%2e/ledger.db",
        "../token",
        "app.css/../../pyproject.toml",
        "....//....//pyproject.toml",
    ],
)
def test_sec_05_no_path_leads_out(quiet: Standing, family: str, words: str) -> None:
    answer = exchange(quiet.port, request(family + words, quiet.port))
    assert 400 <= answer.status < 500
    for secret in ("root:", "SQLite format", "[project]", "build-backend"):
        assert secret not in answer.text
    assert (quiet.home.folder / "ledger.db").read_bytes()[:6] == b"SQLite"


def test_sec_05_a_real_file_is_served_by_its_name(quiet: Standing) -> None:
    answer = exchange(quiet.port, request(own_assets().style, quiet.port))
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/css")
