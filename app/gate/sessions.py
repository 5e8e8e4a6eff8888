"""Session cookies that need no memory: version, expiry, name, a draw, and a seal of a token.

Invariants: the token cannot be had from a cookie; a new token ends every session; a value that was
not sealed here opens nothing. A name is shown to others, so only printable ones are sealed.
"""

import base64
import binascii
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

SESSION_S = 30 * 24 * 3600
MAX_NAME_CHARS = 40
DEFAULT_NAME = "operator"
_VERSION = "2"
_PURPOSE = b"longwatch session key 1"
_N_PARTS = 5
_MAX_VALUE_CHARS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a cookie proves. `seal` is its own alone; `expires` in seconds of the epoch."""

    name: str
    expires: int
    seal: str


class Sessions:
    """Makes and reads the cookie of one listener. `purpose` keeps the keys of roles apart."""

    def __init__(self, token: str, port: int, purpose: bytes = _PURPOSE) -> None:
        # cookies know no ports: two services of one machine must not end each other's sessions
        self.cookie_name = f"longwatch_{port}"
        self._key = hmac.digest(token.encode(), purpose, sha256)

    def cookie(self, name: str, now: datetime, *, is_https: bool) -> str:
        """Return the Set-Cookie header that starts a session under a name."""
        value = self.value(name, int(now.timestamp()) + SESSION_S)
        return self._set(value, SESSION_S, is_https=is_https)

    def ending(self, *, is_https: bool) -> str:
        """Return the Set-Cookie header that ends it in this browser."""
        return self._set("", 0, is_https=is_https)

    def _set(self, value: str, age_s: int, *, is_https: bool) -> str:
        secure = "; Secure" if is_https else ""
        flags = f"Path=/; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}"
        return f"{self.cookie_name}={value}; {flags}"

    def value(self, name: str, expires: int) -> str:
        written = base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")
        # the draw: two logins of one second under one name are two sessions, to be ended apart
        content = f"{_VERSION}.{expires}.{written}.{secrets.token_urlsafe(6)}"
        return f"{content}.{self._seal(content)}"

    def _seal(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), sha256).hexdigest()

    def name_in(self, cookies: str, now: datetime) -> str | None:
        """Return the name of the session that a Cookie header holds, None if it holds none."""
        found = self.found_in(cookies, now)
        return None if found is None else found.name

    def found_in(self, cookies: str, now: datetime) -> Session | None:
        """Return the session that a Cookie header holds, None if it holds none."""
        # by hand: http.cookies gives up at the first odd cookie of another program on this host
        for each in cookies.split(";"):
            key, _, value = each.strip().partition("=")
            found = self._session_of(value, now) if key == self.cookie_name else None
            if found is not None:
                return found
        return None

    def _session_of(self, value: str, now: datetime) -> Session | None:
        parts = value.split(".")
        if len(value) > _MAX_VALUE_CHARS or len(parts) != _N_PARTS or not value.isascii():
            return None
        content, _, seal = value.rpartition(".")
        if not hmac.compare_digest(seal, self._seal(content)):
            return None
        version, expires, written, _, _ = parts
        if version != _VERSION or int(expires) <= now.timestamp():  # sealed here: it is a number
            return None
        try:
            name = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
        return Session(name=name, expires=int(expires), seal=seal)


def clean_name(given: str) -> str | None:
    r"""Return a name as it goes into the list of activity, None if it may not.

    >>> clean_name("  Ada  Lovelace "), clean_name(""), clean_name("a" * 41), clean_name("a\x1b[m")
    ('Ada Lovelace', 'operator', None, None)
    """
    name = " ".join(given.split()) or DEFAULT_NAME
    return name if len(name) <= MAX_NAME_CHARS and name.isprintable() else None
