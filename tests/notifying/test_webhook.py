"""One POST to a real receiver on loopback: what it gets, and what its answers mean."""

import asyncio
import socket
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from app.core.messages import Message, MessageEvent
from app.notifying.addresses import Allowed, allowed_of
from app.notifying.webhook import Webhook
from tests.gate.test_case_sec_06 import answering, plain
from tests.notifying.conftest import LOOPBACK, hook
from tests.notifying.receiver import HANG, Receiver, receiving

ENDLESS_BYTES = 100_000_000
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def message(**changes: object) -> Message:
    values: dict[str, object] = {
        "id": "17",
        "event": MessageEvent.BEGIN,
        "kind": "stalled",
        "sentence": "64 requests are in flight & <!channel> no token has come for 10 min.",
        "at": NOON,
        "since": NOON,
        "run": "night",
        "run_id": 3,
        "partition": "B1_chat",
        "page": "http://127.0.0.1:8400/runs/3",
    }
    return Message(**(values | changes))  # type: ignore[arg-type]  # named by the tests


async def test_the_body_is_json_that_chat_programs_take(receiver: Receiver) -> None:
    reply = await hook(receiver).send(message())
    assert (reply.is_ok, reply.said) == (True, "HTTP 200")
    (heard,) = receiver.heard
    assert heard == {
        "text": "⚠ night, B1_chat: stalled: 64 requests are in flight &amp; &lt;!channel&gt; no"
        " token has come for 10 min.\nhttp://127.0.0.1:8400/runs/3",
        "id": "17",
        "event": "begin",
        "kind": "stalled",
        "run": "night",
        "run_id": 3,
        "partition": "B1_chat",
        "at": "2024-05-01T12:00:00+00:00",
        "since": "2024-05-01T12:00:00+00:00",
        "sentence": "64 requests are in flight & <!channel> no token has come for 10 min.",
        "page": "http://127.0.0.1:8400/runs/3",
    }
    assert receiver.paths == ["/services/a-secret-path?key=a-secret-key"]
    assert receiver.heads[0]["Host"] == f"127.0.0.1:{receiver.port}"
    assert receiver.heads[0]["Content-Type"] == "application/json"


@pytest.mark.parametrize("status", ["301", "302", "303", "307", "308"])
async def test_no_redirect_is_followed(status: str) -> None:
    with receiving() as inner, receiving(f"{status} Location: {inner.url}") as outer:
        reply = await hook(outer).send(message())
        assert not reply.is_ok
        assert reply.said == f"HTTP {status}, a redirect; those are not followed"
        assert len(outer.heard) == 1
        assert inner.heard == []


@pytest.mark.parametrize(
    ("answer", "retry_after_s"),
    [
        ("500", None),
        ("404", None),
        ("503 Retry-After: 7", 7.0),
        ("429 Retry-After: 120", 120.0),
        ("429 Retry-After: soon", None),
        ("500 Retry-After: 7", None),
    ],
)
async def test_a_bad_status_is_told_with_what_the_receiver_asks_for(
    answer: str, retry_after_s: float | None
) -> None:
    with receiving(answer) as receiver:
        reply = await hook(receiver).send(message())
    assert not reply.is_ok
    assert reply.said == f"HTTP {answer[:3]}"
    assert reply.retry_after_s == retry_after_s


async def test_a_moment_to_come_back_is_read_by_the_receivers_own_clock() -> None:
    head = plain(
        "429 Slow", "", "Date: Wed, 01 May 2024 12:00:00 GMT",
        "Retry-After: Wed, 01 May 2024 12:01:30 GMT",
    )  # fmt: skip
    async with answering(head) as (port, _):
        reply = await Webhook(f"http://127.0.0.1:{port}/", LOOPBACK).send(message())
    assert reply.retry_after_s == 90.0


async def test_a_receiver_that_hangs_is_left_at_the_limit() -> None:
    with receiving(HANG) as receiver:
        reply = await hook(receiver, limit_s=0.2).send(message())
        assert (reply.is_ok, reply.said) == (False, "no answer within 0.2 s")


async def test_of_an_endless_answer_little_is_read() -> None:
    """What the receiver can get rid of is what the sockets hold, no more."""
    n_sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal n_sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        with suppress(ConnectionError):
            while n_sent < ENDLESS_BYTES:
                writer.write(b"y" * 65_536)
                await writer.drain()
                n_sent += 65_536
        writer.close()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reply = await Webhook(f"http://127.0.0.1:{port}/", LOOPBACK).send(message())
    assert not reply.is_ok
    assert n_sent < ENDLESS_BYTES / 2


async def test_an_answer_that_is_no_http_is_not_shown() -> None:
    for raw in (b"SSH-2.0-secret\r\n\r\n", b"HTTP/1.1 999 secret\r\n\r\n", b""):
        async with answering(raw) as (port, _):
            reply = await Webhook(f"http://127.0.0.1:{port}/", LOOPBACK).send(message())
        assert not reply.is_ok
        assert reply.said in ("the answer is not HTTP", "connection reset")


async def test_a_refused_connection_and_an_unknown_name_are_words() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/a-secret"
        reply = await Webhook(url, LOOPBACK).send(message())
    assert reply.said == "connection refused"
    reply = await Webhook("http://no-such-host.invalid/a-secret", LOOPBACK).send(message())
    assert reply.said == "the name is not known"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "[::1]"])
async def test_a_name_for_an_address_of_this_machine_is_refused_and_not_contacted(
    receiver: Receiver, host: str
) -> None:
    reply = await Webhook(f"http://{host}:{receiver.port}/a-secret", Allowed()).send(message())
    assert not reply.is_ok
    assert "is a loopback address" in reply.said
    assert "LONGWATCH_NOTIFY_ALLOW" in reply.said
    assert receiver.heard == []


async def test_a_named_host_is_reached(receiver: Receiver) -> None:
    url = f"http://localhost:{receiver.port}/"
    reply = await Webhook(url, allowed_of("localhost")).send(message())
    assert reply.is_ok


async def test_no_proxy_of_the_environment_is_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await hook(receiver).send(message())).is_ok
        assert proxy.heard == []


async def test_a_server_without_encryption_is_no_https(receiver: Receiver) -> None:
    url = receiver.url.replace("http:", "https:")
    reply = await Webhook(url, LOOPBACK).send(message())
    assert not reply.is_ok
    assert reply.said in ("no encrypted connection could be made", "connection reset")


def test_path_and_query_are_in_no_name_and_no_repr(receiver: Receiver) -> None:
    made = hook(receiver)
    assert made.name == f"webhook 127.0.0.1:{receiver.port}"
    assert "a-secret" not in made.name + repr(made) + str(made)


async def test_a_cancelled_try_ends_at_once(receiver: Receiver) -> None:
    receiver.script.append(HANG)
    task = asyncio.create_task(hook(receiver).send(message()))
    while not receiver.heard:  # noqa: ASYNC110 - heard in another thread
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
