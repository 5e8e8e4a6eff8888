"""Why a server could not be reached, in plain words."""

import errno
import socket

import aiohttp
import pytest

from app.errors import ServerAwayError
from app.sglang.client import ServerClient
from app.sglang.transport import in_words


async def test_a_port_without_a_server_is_connection_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for host in ("127.0.0.1", "localhost"):
        async with ServerClient(f"http://{host}:{port}") as client:
            with pytest.raises(ServerAwayError) as away:
                await client.health()
        assert away.value.message == f"http://{host}:{port} does not answer (connection refused)"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EHOSTUNREACH, "No route to host"), "host unreachable"),
        (OSError(errno.ETIMEDOUT, "Connection timed out"), "timed out"),
        (TimeoutError(), "timed out"),
        (socket.gaierror(-2, "Name or service not known"), "the name is not known"),
        (OSError("Multiple exceptions: [Errno 111] a, [Errno 111] b"), "connection refused"),
        (
            aiohttp.ClientPayloadError("<TransferEncodingError: 400, message='x'>"),
            "broken off in the middle of the answer (ClientPayloadError)",
        ),
        (ValueError("odd"), "ValueError: odd"),
        (ValueError(), "ValueError"),
    ],
)
def test_what_is_known_is_said_plainly_and_what_is_not_with_its_class(
    error: Exception, said: str
) -> None:
    assert in_words(error) == said
