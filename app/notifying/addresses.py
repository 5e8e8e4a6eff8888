"""Which addresses a webhook may go to: those of the open internet, and what the operator names.

Pure. Invariant: an address inside an address (IPv4 in IPv6, in any of its forms) is judged as well;
a name that is allowed opens loopback and private addresses only, never those that no host has or
that a cloud's own services listen on: for these their network must be named.
"""

from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_NAT64 = IPv6Network("64:ff9b::/96")
_CARRIER = IPv4Network("100.64.0.0/10")
_SPECIAL = (IPv4Network("0.0.0.0/8"), IPv4Network("240.0.0.0/4"))
_BY_NAME = frozenset({"a loopback", "a private"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the operator has named: hosts exactly as they stand in the address, and networks."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()


def allowed_of(words: str) -> Allowed:
    """Return what a setting names: hosts, addresses and networks with commas between them.

    >>> allowed_of("chat.internal, 10.1.2.0/24").hosts
    frozenset({'chat.internal'})
    """
    hosts, networks = set(), []
    for word in filter(None, (each.strip().lower() for each in words.split(","))):
        try:
            networks.append(ip_network(word.strip("[]")))
        except ValueError:
            hosts.add(word)
    return Allowed(hosts=frozenset(hosts), networks=tuple(networks))


def refusal(host: str, address: str, allowed: Allowed) -> str | None:
    """Return why a host may not be reached at that address, None if it may.

    >>> nobody = Allowed()
    >>> refusal("hooks.example", "93.184.216.34", nobody)
    >>> refusal("hooks.example", "169.254.169.254", nobody)
    '169.254.169.254 is a link-local address'
    >>> refusal("hooks.example", "::ffff:10.0.0.1", nobody)
    '::ffff:10.0.0.1 is a private address'
    >>> refusal("chat", "10.0.0.1", Allowed(hosts=frozenset({"chat"})))
    """
    found = ip_address(address)
    if any(each in network for each in _forms(found) for network in allowed.networks):
        return None
    kind = next((kind for each in _forms(found) if (kind := _kind(each))), None)
    if kind is None or (kind in _BY_NAME and host.lower() in allowed.hosts):
        return None
    return f"{address} is {kind} address"


def _forms(address: Address) -> list[Address]:
    """Return the address and those of version 4 that stand in it."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inside: list[Address] = []
    if address.sixtofour is not None:
        inside.append(address.sixtofour)
    if address.teredo is not None:
        inside += address.teredo
    if address in _NAT64:
        inside.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [*inside, address]


def _kind(address: Address) -> str | None:
    """Return what kind of address it is if it is none of the open internet."""
    for holds, kind in (
        (address.is_unspecified, "an unspecified"),
        (address.is_loopback, "a loopback"),
        (address.is_link_local, "a link-local"),
        (address.is_multicast, "a multicast"),
        (getattr(address, "is_site_local", False), "a private"),
        (address in _CARRIER, "a private"),
        (address.is_private and not _is_special(address), "a private"),
        (address.is_reserved or not address.is_global, "a reserved"),
    ):
        if holds and not _is_translated(address):
            return kind
    return None


def _is_translated(address: Address) -> bool:
    """Return whether the address stands for one of version 4, which is judged instead."""
    return address in _NAT64


def _is_special(address: Address) -> bool:
    """Return whether the address is of a block that no host has."""
    return any(address in network for network in _SPECIAL)
