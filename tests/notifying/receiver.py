"""A receiver of webhooks on loopback: keeps what it hears and answers what a test tells it to.

`hang` answers 200 once `freed` is set.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OK = "200"
HANG = "hang"


@dataclass
class Receiver:
    """`script` are the next answers, then `200`; `STATUS Name: value` adds a header."""

    port: int = 0
    script: list[str] = field(default_factory=list)
    heard: list[dict[str, Any]] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    freed: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/a-secret-path?key=a-secret-key"

    def ids(self) -> list[str]:
        return [str(each["id"]) for each in self.heard]

    def told(self) -> list[tuple[str, str]]:
        return [(str(each["event"]), str(each["kind"])) for each in self.heard]


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.at_s.append(time.monotonic())
            receiver.heard.append(json.loads(body))
            receiver.heads.append(dict(self.headers.items()))
            receiver.paths.append(self.path)
            answer = receiver.script.pop(0) if receiver.script else OK
            if answer == HANG:
                receiver.freed.wait(60)
                answer = OK
            status, _, header = answer.partition(" ")
            with suppress(ConnectionError):  # who asked may have gone
                self.send_response(int(status))
                if header:
                    self.send_header(*header.split(": ", 1))
                self.end_headers()
                self.wfile.write(b"the words of the receiver")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Say nothing."""

    return Handler


@contextmanager
def receiving(*script: str, port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver(script=list(script))
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(receiver))
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.freed.set()
        server.shutdown()
        thread.join()
        server.server_close()
