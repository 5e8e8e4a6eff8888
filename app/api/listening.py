"""The listening socket, and uvicorn without opinions about signals."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from app.errors import ConflictError

_BACKLOG = 2_048


class QuietServer(uvicorn.Server):
    """Uvicorn without its signal handlers: who runs the service decides what a signal means."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; another free port if the wanted one is taken.

    It listens already: who is told its address may connect before the server takes over.
    """
    try:
        return _listening(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return _listening(host, 0)
        raise ConflictError(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="Give another --port"
        ) from error


def _listening(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
