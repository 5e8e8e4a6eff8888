"""Asks the kernel about one TCP connection by its two ends: a netlink message there and one back.

Takes microseconds whatever else is connected; reading `/proc/net/tcp` walks the kernel's whole
table of connections, which takes 14 ms on an idle machine with a large one. Layouts are those of
`linux/netlink.h` and `linux/inet_diag.h`.
"""

import errno
import socket
import struct
from dataclasses import dataclass

from app.gate.asking import Address

_AF_NETLINK = 16
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
_NO_COOKIE = 0xFFFFFFFF
_EVERY_STATE = 0xFFFFFFFF
_HEAD = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI2s2s16s16sIII")
# family, state, two of the timer; the two ends; expires, both queues, uid, inode
_REPLY = struct.Struct("=BBBB48sIIIII")
_ERROR = struct.Struct("=i")
_TIMEOUT_S = 1.0
_MAX_REPLY_BYTES = 8_192
_ESTABLISHED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One end of a connection, as the kernel has it. `stands`: open at both ends."""

    uid: int
    stands: bool


def look_up(own: Address, other: Address) -> Found | None:
    """Return the socket whose own end and other end these are, None if there is none.

    OSError where this system does not answer such questions; ENOENT is told as none, which is also
    what a kernel without the module says.
    """
    family = socket.AF_INET6 if ":" in own[0] else socket.AF_INET
    question = _QUESTION.pack(
        family,
        socket.IPPROTO_TCP,
        0,
        0,
        _EVERY_STATE,
        own[1].to_bytes(2, "big"),
        other[1].to_bytes(2, "big"),
        socket.inet_pton(family, own[0]).ljust(16, b"\0"),
        socket.inet_pton(family, other[0]).ljust(16, b"\0"),
        0,
        _NO_COOKIE,
        _NO_COOKIE,
    )
    head = _HEAD.pack(_HEAD.size + len(question), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    with socket.socket(_AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_TIMEOUT_S)
        kernel.sendto(head + question, (0, 0))
        reply = kernel.recv(_MAX_REPLY_BYTES)
    return _read(reply)


def _read(reply: bytes) -> Found | None:
    _, kind, _, _, _ = _HEAD.unpack_from(reply)
    if kind == _NLMSG_ERROR:
        (code,) = _ERROR.unpack_from(reply, _HEAD.size)
        if -code == errno.ENOENT:
            return None
        raise OSError(-code, "the kernel does not tell who owns a socket")
    _, state, _, _, _, _, _, _, uid, inode = _REPLY.unpack_from(reply, _HEAD.size)
    return Found(uid=uid, stands=state == _ESTABLISHED and inode != 0)
