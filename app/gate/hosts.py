"""The names under which the service is reached; any other Host header is a foreign page's (sec-02).

A page that makes its own name point to this machine still sends that name. Loopback names may
come with any port, since `ssh -L` changes it; others with the port that was said.
"""

import ipaddress
import socket
from contextlib import suppress
from dataclasses import dataclass

from app.settings import HOST_NAME

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """`names` pass with any port or none, `exact` (name:port) as they stand. All lower case."""

    names: frozenset[str]
    exact: frozenset[str]
    port: int

    def allows(self, host: str) -> bool:
        """Return whether a Host header, in lower case, means this service."""
        found = HOST_NAME.fullmatch(host)
        return found is not None and (found[1] in self.names or host in self.exact)

    def is_local(self, host: str) -> bool:
        """Return whether the header names this machine to itself, whatever the port."""
        found = HOST_NAME.fullmatch(host)
        return found is not None and found[1] in _LOOPBACK_NAMES

    def shown(self) -> str:
        """Return the names for a message, with the port of the service where any will do."""
        return " or ".join(sorted({f"{name}:{self.port}" for name in self.names} | self.exact))


def allowed_hosts(host: str, port: int, more: str = "") -> Hosts:
    """Return what the Host header may be for a listener.

    `more` lists further names (setting `allowed_hosts`): `name` passes with any port, `name:port`
    with that one.
    """
    names = set(_LOOPBACK_NAMES)
    exact = set()
    if host in _WILDCARDS:
        own = {socket.gethostname().lower(), *_own_address()}
        with suppress(OSError):
            own |= set(socket.gethostbyname_ex(socket.gethostname())[2])
        exact |= {f"{name}:{port}" for name in own}
    else:
        exact.add(f"[{host}]:{port}" if ":" in host else f"{host.lower()}:{port}")
    for each in filter(None, (word.strip().lower() for word in more.split(","))):
        found = HOST_NAME.fullmatch(each)
        (exact if found and found[2] else names).add(each)
    return Hosts(names=frozenset(names), exact=frozenset(exact), port=port)


def _own_address() -> list[str]:
    """Return the address under which others of the network see this machine, if it has one."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # a test network: nothing is sent, only a way is chosen
        return [str(probe.getsockname()[0])]
    return []


def is_loopback(host: str) -> bool:
    """Return whether an address or name can only be reached from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("::ffff:127.0.0.1")
    (True, True, True)
    >>> is_loopback("0.0.0.0"), is_loopback("headnode")
    (False, False)
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
