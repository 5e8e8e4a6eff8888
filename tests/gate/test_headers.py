"""What every answer tells the browser, refusals and surprises too."""

import pytest

from app.gate.headers import CDN, safe_headers
from app.web.assets import own_assets
from tests.gate.people import exchange, request
from tests.gate.standing import Standing

PAGE = "text/html"
STRICT = "default-src 'none'; frame-ancestors 'none'"
OF_PAGES = (
    f"default-src 'self'; script-src 'self' {CDN}; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


@pytest.mark.parametrize(
    ("path", "told", "status"),
    [
        ("/login", f"Accept: {PAGE}", 200),
        ("/nowhere", f"Accept: {PAGE}", 404),
        ("/broken", f"Accept: {PAGE}", 500),
        ("/nowhere", "Host: evil.example\r\nAccept: text/html", 421),
        ("/nowhere", f"X-Forwarded-For: 1\r\nAccept: {PAGE}", 303),
        ("/login", "Sec-Fetch-Site: cross-site\r\nAccept: text/html", 403),
    ],
)
def test_a_page_loads_from_here_and_the_cdn(
    quiet: Standing, path: str, told: str, status: int
) -> None:
    answer = exchange(quiet.port, request(path, quiet.port, *told.split("\r\n")))
    assert answer.status == status
    assert answer.headers["content-security-policy"] == OF_PAGES
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "told", "status"),
    [
        ("/api/v1/runs", "Accept: */*", 200),
        ("/api/v1/runs/77", f"Accept: {PAGE}", 404),
        ("/healthz", f"Accept: {PAGE}", 200),
        ("/metrics", "Accept: */*", None),
        ("/broken", "Accept: */*", 500),
        ("/nowhere", "Host: evil.example", 421),
        ("/api/v1/runs", "Authorization: Bearer wrong", 401),
    ],
)
def test_an_answer_for_machines_loads_nothing(
    quiet: Standing, path: str, told: str, status: int | None
) -> None:
    answer = exchange(quiet.port, request(path, quiet.port, told))
    assert answer.status == status or status is None
    assert answer.headers["content-security-policy"] == STRICT
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_a_file_that_never_changes_keeps_its_own_word(quiet: Standing) -> None:
    answer = exchange(quiet.port, request(own_assets().style, quiet.port))
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_surprise_shows_nothing_of_the_inside(quiet: Standing) -> None:
    for accept in (PAGE, "*/*"):
        answer = exchange(quiet.port, request("/broken", quiet.port, f"Accept: {accept}"))
        assert "internal error" in answer.text
        assert "secret" not in answer.text
        assert answer.text.startswith("<h1>") is (accept == PAGE)


def test_local_assets_need_no_cdn() -> None:
    headers = dict(safe_headers("/", [(b"content-type", b"text/html")], with_cdn=False))
    assert CDN.encode() not in headers[b"content-security-policy"]
    assert b"script-src 'self';" in headers[b"content-security-policy"]


def test_an_answer_cannot_loosen_the_policy() -> None:
    given = [(b"Content-Security-Policy", b"default-src *"), (b"content-type", b"text/html")]
    policies = [value for name, value in safe_headers("/", given) if b"policy" in name.lower()]
    assert b"default-src *" not in policies
