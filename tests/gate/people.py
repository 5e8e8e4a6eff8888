"""People of this machine who come by: raw requests of ours, and processes of another user."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.gate.asking import Address

STRANGER_UID = 65_533
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
_BOUND_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back over a socket: status, headers in lower case, the rest as text."""

    status: int
    headers: dict[str, str]
    text: str


def read_answer(raw: bytes) -> Answer:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = [line.partition(":") for line in lines]
    return Answer(
        status=int(first.split()[1]),
        headers={name.lower(): value.strip() for name, _, value in pairs},
        text=body.decode("utf-8", "replace"),
    )


def request(path: str, port: int, *headers: str, method: str = "GET", body: str = "") -> bytes:
    """Return a request as its bytes, the path untouched; Host is ours unless one is given."""
    lines = [f"{method} {path} HTTP/1.1", "Connection: close", *headers]
    if not any(line.lower().startswith("host:") for line in headers):
        lines.append(f"Host: 127.0.0.1:{port}")
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def exchange(port: int, raw: bytes, *, host: str = "127.0.0.1") -> Answer:
    """Send bytes over a connection of this process; return what came until it was closed."""
    with socket.create_connection((host, port), timeout=_BOUND_S) as client:
        client.sendall(raw)
        answer = b""
        while part := client.recv(65_536):
            answer += part
    return read_answer(answer)


@dataclass
class Stranger:
    """A process of another user that holds one connection."""

    process: "subprocess.Popen[str]"
    address: Address

    def say(self, raw: bytes) -> Answer:
        self._order(f"say {json.dumps(raw.decode())}")
        return read_answer(str(self._hear()).encode("latin-1"))

    def close(self) -> None:
        self._order("close")
        self._hear()

    def _order(self, words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def _hear(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@contextmanager
def stranger(port: int, *, uid: int = STRANGER_UID, own_port: int = 0) -> Iterator[Stranger]:
    """Let somebody else connect to a port of ours."""
    command = [sys.executable, str(Path(__file__).with_name("stranger.py"))]
    process = subprocess.Popen(
        [*command, str(port), str(uid), str(own_port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        host, own_port = json.loads(process.stdout.readline())
        yield Stranger(process, (host, own_port))
    finally:
        process.communicate("end\n", timeout=_BOUND_S)
