"""One request to its end: what came, and how each way to fail is called."""

import asyncio
import socket

import pytest

from app.core.types import EndKind
from app.sglang.client import ServerClient
from app.sglang.stream import Answer
from app.simulator.server import SimulatorThread
from tests.sglang_client.asking import ask, body
from tests.waiting import wait_until

PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


@pytest.mark.parametrize("incremental", [False, True])
async def test_an_answer_is_streamed_to_its_end(incremental: bool) -> None:
    with SimulatorThread(port=0, instant=True, incremental=incremental) as simulator:
        async with ServerClient(simulator.url) as client:
            answer = Answer(text_is_delta=incremental)
            end = await ask(client, answer=answer)

    assert (end.kind, len(end.ids)) == (EndKind.FINISHED, 30)
    assert end.finish_reason == {"type": "length", "length": 30}
    assert end.text
    assert answer.is_complete


async def test_one_connection_serves_one_answer_after_the_other(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    for number in range(5):
        end = await ask(client, f"row {number}", rid=f"lw-{number}")
        assert end.kind is EndKind.FINISHED

    assert simulator.stats.tcp_accepts == 1


async def test_net_03_proxy_variables_are_ignored(
    simulator: SimulatorThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")

    async with ServerClient(simulator.url) as client:
        ends = [await ask(client, "a1"), await ask(client, "a2", rid="lw-2")]
        facts = await client.facts()

    assert [end.kind for end in ends] == [EndKind.FINISHED, EndKind.FINISHED]
    assert facts.model_path == "/models/toy"


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
async def test_a_server_that_takes_no_connection_refuses(host: str) -> None:
    async with ServerClient(f"http://{host}:{unused_port()}") as client:
        end = await ask(client)

    assert (end.kind, list(end.ids)) == (EndKind.REFUSED, [])
    assert end.message


async def test_a_server_that_was_stopped_refuses_and_one_that_is_back_serves(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    assert (await ask(client)).kind is EndKind.FINISHED
    await asyncio.to_thread(simulator.stop)
    # The kept connection is found dead at once or by the next request.
    gone = [await ask(client, rid="lw-2"), await ask(client, rid="lw-3")]
    await asyncio.to_thread(simulator.start)

    back = await ask(client, rid="lw-4")

    assert gone[1].kind is EndKind.REFUSED
    assert back.kind is EndKind.FINISHED


@pytest.mark.parametrize("how", ["cut before_headers", "cut mid_body", "exit"])
async def test_a_connection_that_ends_without_an_answer_was_cut(
    simulator: SimulatorThread, client: ServerClient, how: str
) -> None:
    simulator.script({"*": [how]})

    end = await ask(client)

    assert (end.kind, list(end.ids)) == (EndKind.CUT, [])
    assert end.message


async def test_a_stream_that_is_cut_keeps_what_had_come(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    simulator.script({"*": [{"cut_after": 7}]})

    end = await ask(client)

    assert (end.kind, len(end.ids)) == (EndKind.CUT, 7)


async def test_a_stream_that_ends_cleanly_but_too_early_was_cut(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    event = {"output_ids": [87, 88], "meta_info": {"completion_tokens": 2}}
    simulator.script({"*": [{"sse": [event], "end": "eof"}]})

    end = await ask(client)

    assert (end.kind, list(end.ids)) == (EndKind.CUT, [87, 88])


async def test_a_server_that_dies_in_mid_stream_was_cut_not_refused() -> None:
    with SimulatorThread(port=0) as simulator:
        async with ServerClient(simulator.url) as client:
            first = asyncio.Event()
            answer = Answer(on_first_ids=first.set)
            asked = asyncio.create_task(ask(client, answer=answer, max_new_tokens=10_000))
            await asyncio.wait_for(first.wait(), 30)
            await asyncio.to_thread(simulator.stop)
            end = await asyncio.wait_for(asked, 30)

    assert end.kind is EndKind.CUT
    assert 0 < len(end.ids) < 10_000


async def test_an_abort_ends_the_stream_with_what_had_come() -> None:
    with SimulatorThread(port=0) as simulator:
        async with ServerClient(simulator.url) as client:
            first = asyncio.Event()
            answer = Answer(on_first_ids=first.set)
            asked = asyncio.create_task(ask(client, answer=answer, max_new_tokens=10_000))
            await asyncio.wait_for(first.wait(), 30)
            await client.abort("lw-1")
            end = await asyncio.wait_for(asked, 30)

    assert end.kind is EndKind.FINISHED
    assert isinstance(end.finish_reason, dict)
    assert end.finish_reason["type"] == "abort"
    assert 0 < len(end.ids) < 10_000
    assert not answer.is_complete


async def test_an_abort_of_a_server_that_is_gone_says_nothing(simulator: SimulatorThread) -> None:
    async with ServerClient(simulator.url) as client:
        await asyncio.to_thread(simulator.stop)

        await client.abort("lw-1")


async def test_a_cancelled_request_hangs_up(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    simulator.script({"*": ["hang"]})
    asked = asyncio.create_task(client.generate(body("a"), Answer(), None))
    await wait_until(lambda: simulator.stats.in_flight == 1, "the request to arrive")

    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    await wait_until(lambda: simulator.stats.in_flight == 0, "the server to notice")


async def test_a_question_never_waits_behind_hanging_answers(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    simulator.script({"*": ["hang"]})
    asked = [
        asyncio.create_task(client.generate(body("a", rid=f"lw-{n}"), Answer(), None))
        for n in range(150)
    ]
    await wait_until(lambda: simulator.stats.in_flight == 150, "all requests to arrive")

    assert await asyncio.wait_for(client.health(), 20) == 200

    for task in asked:
        task.cancel()
    await asyncio.wait(asked)
