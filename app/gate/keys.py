"""What opens the door of one service: its tokens, the sessions made from them, its own user.

Owns the order: a bearer token decides alone where one is shown, then a session, then the socket's
owner; and the role of who comes in: the token makes an operator, the view token somebody who may
only look. Invariants: tokens are compared in constant time; they are in no repr, answer or log; a
right bearer token is never refused, however many wrong ones came before; who looks cannot make
himself an operator's session.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum, auto

from app.clock import Clock
from app.gate.asking import Address, Asking
from app.gate.attempts import Attempts
from app.gate.ended import Ended
from app.gate.origin import refuse_foreign_look
from app.gate.peers import Peers
from app.gate.refusals import Refusal
from app.gate.sessions import Sessions

CLI_AGENT = "longwatch-cli"
# Who stands behind a proxy is not who owns its socket.
_HANDED_ON = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_MANY_TOKENS = 2
_LOOKING = b"longwatch view session key 1"


class Way(StrEnum):
    TOKEN = auto()
    SESSION = auto()
    OWN_USER = auto()


class Role(StrEnum):
    """What somebody may do: everything, or look at everything."""

    OPERATOR = auto()
    VIEWER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Who came in, how, and as what. `who` is the user of every action of that request."""

    way: Way
    who: str
    role: Role = Role.OPERATOR


class Login(StrEnum):
    """What a token that was typed in is."""

    RIGHT = auto()
    LOOKING = auto()
    WRONG = auto()
    TOO_OFTEN = auto()


@dataclass(slots=True)
class Keys:
    """See the module. `is_open_to_own_user` holds on loopback without a token that was set.

    `view_token` is None where nobody may only look. `ended` holds the sessions that were logged
    out of. `changed` is called when somebody who was in may be so no longer.
    """

    token: str = field(repr=False)
    is_open_to_own_user: bool
    port: int
    clock: Clock = field(repr=False)
    view_token: str | None = field(default=None, repr=False)
    ended: Ended = field(default_factory=Ended, repr=False)
    changed: Callable[[], None] = field(default=lambda: None, repr=False)
    sessions: Sessions = field(init=False, repr=False)
    view_sessions: Sessions | None = field(init=False, repr=False)
    _attempts: Attempts = field(init=False, repr=False)
    _peers: Peers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._attempts = Attempts(self.clock)
        self._peers = Peers()
        self._cut()

    def _cut(self) -> None:
        self.sessions = Sessions(self.token, self.port)
        view = self.view_token
        self.view_sessions = None if view is None else Sessions(view, self.port, _LOOKING)

    def renew(self, token: str, view_token: str | None) -> None:
        """Take other tokens: what was made from an old one opens nothing from now on."""
        if (token, view_token) != (self.token, self.view_token):
            self.token, self.view_token = token, view_token
            self._cut()
            self.changed()

    def entry(self, asking: Asking, *, is_local_name: bool) -> Entry | None:
        """Return who comes in, None if nobody is shown; Refusal for what is wrong.

        `is_local_name`: the Host header is one of this machine's names for itself.
        """
        shown = _bearer_in(asking)
        if shown is not None:
            role = self._role_of_bearer(shown, asking.client)
            return Entry(way=Way.TOKEN, who=_by_agent(asking, role), role=role)
        session = self._session(asking)
        if session is not None:
            refuse_foreign_look(asking)  # other ports of a host count as the same site
            name, role = session
            return Entry(way=Way.SESSION, who=f"{name} (page)", role=role)
        if self._is_own_user(asking, is_local_name=is_local_name):
            refuse_foreign_look(asking)
            from_page = asking.all("origin") or asking.all("sec-fetch-site")
            return Entry(
                way=Way.OWN_USER,
                who="operator (page)" if from_page else _by_agent(asking, Role.OPERATOR),
            )
        return None

    def _session(self, asking: Asking) -> tuple[str, Role] | None:
        """Return the name given at the login of this browser's session, and as what it came in."""
        cookies = "; ".join(asking.all("cookie"))
        if not cookies:
            return None
        for sessions, role in ((self.sessions, Role.OPERATOR), (self.view_sessions, Role.VIEWER)):
            found = sessions.found_in(cookies, self.clock.now()) if sessions else None
            if found is not None and not self.ended.holds(found.seal):
                return found.name, role
        return None

    def log_out(self, asking: Asking) -> None:
        """End the session of this browser wherever a copy of its cookie lies."""
        cookies = "; ".join(asking.all("cookie"))
        now = self.clock.now()
        for sessions in filter(None, (self.sessions, self.view_sessions)):
            found = sessions.found_in(cookies, now)
            if found is not None:
                self.ended.add(found.seal, found.expires, now)
        self.changed()

    def log_in(self, token: str, client: Address | None) -> tuple[Login, int]:
        """Try a token that was typed in; returns what it is and the seconds to wait, if any."""
        host = _host_of(client)
        wait_s = self._attempts.wait_s(host)
        if wait_s:
            return Login.TOO_OFTEN, wait_s
        role = self._role_of(token)
        if role is not None:
            return (Login.RIGHT if role is Role.OPERATOR else Login.LOOKING), 0
        self._attempts.note(host)
        return Login.WRONG, 0

    def _role_of(self, token: str) -> Role | None:
        """Return what a token makes of who shows it. Both are compared, whatever comes out."""
        given = token.encode("utf-8", "replace")
        is_operator = hmac.compare_digest(given, self.token.encode())
        is_viewer = hmac.compare_digest(given, (self.view_token or "").encode())
        if is_operator:
            return Role.OPERATOR
        return Role.VIEWER if is_viewer and self.view_token else None

    def _role_of_bearer(self, shown: str, client: Address | None) -> Role:
        role = self._role_of(shown)
        if role is not None:
            return role
        wait_s = self._attempts.wait_s(_host_of(client))
        if wait_s:
            raise Refusal(
                429, "too_many_tries", "too many wrong tokens", "wait, or look up the right one",
                retry_after_s=wait_s,
            )  # fmt: skip
        self._attempts.note(_host_of(client))
        raise no_token()

    def _is_own_user(self, asking: Asking, *, is_local_name: bool) -> bool:
        return (
            self.is_open_to_own_user
            and is_local_name
            and not any(asking.all(name) for name in _HANDED_ON)
            and self._peers.is_own(asking.client, asking.server)
        )


def no_token() -> Refusal:
    return Refusal(
        401,
        "no_token",
        "the token is missing or wrong",
        "send Authorization: Bearer with the content of the file token in the home folder",
    )


def only_looking() -> Refusal:
    return Refusal(
        403,
        "only_looking",
        "this key may only look; nothing was changed",
        "to change something, log out and log in with the token of operators",
    )


def _bearer_in(asking: Asking) -> str | None:
    """Return the token that is shown, None if none is; a proxy's own Basic login is none."""
    given = asking.all("authorization")
    if len(given) >= _MANY_TOKENS:
        raise no_token()
    scheme, _, token = asking.first("authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _by_agent(asking: Asking, role: Role) -> str:
    is_cli = asking.first("user-agent").startswith(CLI_AGENT)
    return f"{role} (command line)" if is_cli else f"{role} (API)"


def _host_of(client: Address | None) -> str:
    return client[0] if client else ""
