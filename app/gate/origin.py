"""Whether a change comes from our own page, or from one that another site sent (sec-03).

A browser sends cookies, and connects as its user, on behalf of every page it shows; a bearer token
only where somebody put it. So what comes with a token must not speak against itself, and what comes
without one must prove that our own page sent it.
"""

from app.gate.asking import Asking
from app.gate.refusals import Refusal

MAX_BODY_BYTES = 4_000_000
MAX_OPEN_BODY_BYTES = 10_000
_OWN_SITES = frozenset({"same-origin", "none"})


def refuse_foreign_change(asking: Asking, host: str) -> None:
    """Refuse what a page of another origin makes a browser send. `host` is the Host header."""
    if any(not _is_own(origin, host) for origin in asking.all("origin")):
        raise Refusal(
            403,
            "foreign_origin",
            "requests of other pages may not change anything",
            "a proxy in between must hand on the Host header as it got it",
        )
    if any(site not in _OWN_SITES for site in asking.all("sec-fetch-site")):
        raise Refusal(403, "foreign_origin", "requests of other sites may not change anything")


def want_own_page(asking: Asking, host: str) -> None:
    """Refuse a change that does not prove that our own page sent it."""
    origins = asking.all("origin")
    if any(_is_own(origin, host) for origin in origins):
        return
    if asking.first("sec-fetch-site") == "same-origin":
        return
    raise Refusal(
        403,
        "no_origin",
        "a change without a token must come from the page of this service",
        "scripts send Authorization: Bearer with the content of the file token in the home folder",
    )


def refuse_foreign_look(asking: Asking) -> None:
    """Refuse what another site's page loads into itself with the rights of its visitor.

    A link that a person follows from there is no such thing.
    """
    sites = asking.all("sec-fetch-site")
    follows = asking.first("sec-fetch-mode") == "navigate" and (
        asking.first("sec-fetch-dest") == "document"
    )
    if any(site not in _OWN_SITES for site in sites) and not follows:
        raise Refusal(403, "foreign_origin", "pages of other sites may not look in here")


def check_body(asking: Asking, limit_bytes: int) -> None:
    if asking.all("transfer-encoding"):
        raise Refusal(411, "no_length", "send the body with a Content-Length")
    length = asking.first("content-length") or "0"
    if not (length.isascii() and length.isdigit() and int(length) <= limit_bytes):
        raise Refusal(413, "too_large", f"a body has at most {limit_bytes:,} bytes here")


def _is_own(origin: str, host: str) -> bool:
    return origin.lower() in (f"http://{host}", f"https://{host}")
