"""Who owns a TCP connection, from /proc/net/tcp and tcp6: the slower way, for old kernels.

Only a connection that stands counts, because the kernel calls a socket that its owner has closed
already root's.
"""

import socket
import sys
from pathlib import Path

from app.gate.asking import Address

TABLES = Path("/proc/self/net")
_STANDS = "01"  # TCP_ESTABLISHED
_UID_FIELD, _INODE_FIELD = 6, 8
_MAPPED = bytes(10) + b"\xff\xff"


def owner_of(client: Address, server: Address, tables: Path = TABLES) -> int | None:
    """Return the uid that owns the client's end of a connection that stands, None if none does.

    OSError where this system has no such tables.
    """
    for name, written in (("tcp", _in_v4), ("tcp6", _in_v6)):
        ends = f" {written(client)} {written(server)} {_STANDS} "
        try:
            text = (tables / name).read_text("ascii", "replace")
        except FileNotFoundError:
            if name == "tcp":  # tcp6 alone is missing where IPv6 is off
                raise
            continue
        owner = _owner_in(text, ends)
        if owner is not None:
            return owner
    return None


def _owner_in(text: str, ends: str) -> int | None:
    start = text.find(ends)
    if start < 0:
        return None
    # from the client's address on: two ends, state, queues, timer, retransmits, uid, timeout, inode
    fields = text[start : text.find("\n", start)].split()
    return int(fields[_UID_FIELD]) if fields[_INODE_FIELD] != "0" else None


def _in_v4(end: Address) -> str:
    """Return an end as /proc/net/tcp writes it, nothing if it is of the other family."""
    try:
        return _written(socket.inet_pton(socket.AF_INET, end[0]), end[1])
    except OSError:
        return ""


def _in_v6(end: Address) -> str:
    """Return an end as /proc/net/tcp6 writes it; one of version 4 as a mapped one."""
    try:
        packed = _MAPPED + socket.inet_pton(socket.AF_INET, end[0])
    except OSError:
        packed = socket.inet_pton(socket.AF_INET6, end[0])
    return _written(packed, end[1])


def _written(packed: bytes, port: int) -> str:
    """Return hexadecimal words of 32 bits in the order of this machine, then the port."""
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    shown = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
    return f"{shown}:{port:04X}"
