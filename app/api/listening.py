"""The listening socket, and uvicorn without opinions about signals."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from app.errors import ConflictError


class QuietServer(uvicorn.Server):
    """Uvicorn without its signal handlers: who runs the service decides what a signal means."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; another free port if the wanted one is taken."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            listener.close()
            raise ConflictError(
                f"cannot listen on {host}:{port}: {error.strerror}", hint="Give another --port"
            ) from error
        listener.bind((host, 0))
    return listener
