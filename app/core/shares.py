"""How a concurrency is divided: a class's over its partitions, a partition's over servers.

Owns the division only; shares are written by the service and read by workers.
Invariant: shares sum to no more than the limit, except where concurrencies set by hand exceed it;
none is larger than the work it is for.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a partition could use: `n_open` samples pending or running; `own` was set by hand."""

    n_open: int
    own: int | None = None


def split_class(limit: int, partitions: Mapping[str, Need]) -> dict[str, int]:
    """Return each partition's share of the class's concurrency, in the order given.

    Partitions with their own concurrency keep it; the others share what is left in equal parts.
    What one has no samples for goes to the others, and a rest that does not divide goes one each
    to those that come first, so that shares stay still while nothing changes.
    """
    shares = {
        name: min(need.own, need.n_open)
        for name, need in partitions.items()
        if need.own is not None
    }
    left = max(0, limit - sum(shares.values()))
    hungry = {name: need.n_open for name, need in partitions.items() if need.own is None}
    shares |= _level(left, hungry)
    return {name: shares[name] for name in partitions}


def split_servers(limit: int, n_servers: int) -> list[int]:
    """Return the shares of `n_servers` equal servers; the first ones take the rest."""
    each, rest = divmod(max(0, limit), n_servers)
    return [each + (i < rest) for i in range(n_servers)]


def _level(left: int, room: Mapping[str, int]) -> dict[str, int]:
    """Pour `left` into glasses of the given sizes until all stand equally high or are full."""
    shares: dict[str, int] = {}
    # the smallest first: what a glass cannot hold is then part of every later, equal portion
    waiting = sorted(room, key=lambda name: room[name])
    while waiting and room[waiting[0]] <= left // len(waiting):
        name = waiting.pop(0)
        shares[name] = room[name]
        left -= room[name]
    ordered = [name for name in room if name in set(waiting)]
    for name, share in zip(
        ordered, split_servers(left, len(ordered)) if ordered else (), strict=True
    ):
        shares[name] = min(share, room[name])
    return shares
