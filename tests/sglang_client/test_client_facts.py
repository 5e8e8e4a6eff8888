"""What a server says of itself: whatever its routes are called, and without its secrets."""

import asyncio
from typing import Any

import pytest

from app.core.types import EndKind, ServerFacts
from app.errors import ServerAwayError, ServerError
from app.sglang.client import ServerClient
from app.simulator.server import SimulatorThread
from tests.sglang_client.asking import ask

GONE: list[Any] = [404, {"detail": "Not Found"}]
NEW = ("/server_info", "/model_info")
OLD = ("/get_server_info", "/get_model_info")
KEY = "sk-very-secret-1234"
ADMIN_KEY = "sk-admin-5678"


async def test_srv_24_facts_are_the_same_by_new_and_by_old_route_names(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    simulator.script(None, endpoints=dict.fromkeys(OLD, GONE))
    by_new = await client.facts()
    simulator.script(None, endpoints=dict.fromkeys(NEW, GONE))
    by_old = await client.facts()

    assert _still(by_new) == _still(by_old)
    assert (by_old.version, by_old.model_path) == ("0.5.23", "/models/toy")
    assert (by_old.context_tokens, by_old.kv_capacity_tokens) == (32_768, 231_000)


def _still(facts: ServerFacts) -> dict[str, object]:
    """Return the facts that do not change from one moment to the next."""
    return {name: getattr(facts, name) for name in ServerFacts.__slots__ if name != "arguments"}


async def test_srv_24_with_neither_route_the_limits_are_unknown(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    simulator.script(None, endpoints=dict.fromkeys((*NEW, *OLD, "/v1/models"), GONE))

    facts = await client.facts()

    assert facts == ServerFacts()
    assert (await ask(client)).kind is EndKind.FINISHED


@pytest.mark.parametrize("odd", [["text", "no json"], ["json!", [1, 2]], [500, "oops"]])
async def test_a_route_that_says_nothing_usable_counts_as_absent(
    simulator: SimulatorThread, client: ServerClient, odd: list[Any]
) -> None:
    simulator.script(None, endpoints={"/server_info": odd})

    assert (await client.facts()).version == "0.5.23"  # by the old name


async def test_a_wrong_key_is_an_error_with_its_remedy() -> None:
    with SimulatorThread(port=0, instant=True, api_key=KEY) as simulator:
        async with ServerClient(simulator.url, api_key="wrong") as client:
            with pytest.raises(ServerError, match="401") as error:
                await client.facts()
            end = await ask(client)

    assert "LONGWATCH_API_KEY" in error.value.hint
    assert simulator.url in error.value.message
    assert not isinstance(error.value, ServerAwayError)
    assert (end.kind, end.status) == (EndKind.ERROR, 401)
    assert "wrong" not in str(error.value) + end.message


async def test_the_right_key_opens_every_route() -> None:
    with SimulatorThread(port=0, instant=True, api_key=KEY) as simulator:
        async with ServerClient(simulator.url, api_key=KEY) as client:
            assert (await client.facts()).version == "0.5.23"
            assert (await ask(client)).kind is EndKind.FINISHED
            assert await client.tokenize({"prompt": "hello"})


async def test_no_secret_of_the_server_is_among_its_facts() -> None:
    with SimulatorThread(port=0, api_key=KEY, admin_api_key=ADMIN_KEY) as simulator:
        async with ServerClient(simulator.url, api_key=KEY) as client:
            facts = await client.facts()

    assert facts.arguments["served_model_name"] == "/models/toy"
    assert KEY not in repr(facts)
    assert ADMIN_KEY not in repr(facts)
    assert "launch_command" not in facts.arguments


async def test_a_server_that_is_gone_is_away(simulator: SimulatorThread) -> None:
    async with ServerClient(simulator.url) as client:
        assert await client.is_alive()
        await asyncio.to_thread(simulator.stop)

        assert not await client.is_alive()
        with pytest.raises(ServerAwayError, match="does not answer") as error:
            await client.facts()
        with pytest.raises(ServerAwayError):
            await client.health()
        assert await client.detokenize([1]) is None

    assert "Check the address" in error.value.hint


async def test_a_loading_server_is_alive_and_not_healthy(simulator: SimulatorThread) -> None:
    simulator.set(loading=True)

    async with ServerClient(simulator.url) as client:
        assert await client.is_alive()
        assert await client.health() == 503


async def test_text_goes_to_ids_and_back(client: ServerClient) -> None:
    ids = await client.tokenize({"prompt": "hello world"})

    assert ids
    assert await client.detokenize(ids) == "hello world"


async def test_input_that_the_server_refuses_is_no_sign_of_an_absent_server(
    simulator: SimulatorThread, client: ServerClient
) -> None:
    simulator.script(None, endpoints={"/tokenize": [400, {"error": {"message": "bad template"}}]})

    with pytest.raises(ServerError, match="bad template") as error:
        await client.tokenize({"messages": []})

    assert not isinstance(error.value, ServerAwayError)


@pytest.mark.parametrize("answer", [GONE, [503, "x"], [500, "x"], ["json!", {"count": 3}]])
async def test_a_server_that_cannot_tokenize_now_says_nothing_of_the_input(
    simulator: SimulatorThread, client: ServerClient, answer: list[Any]
) -> None:
    simulator.script(None, endpoints={"/tokenize": answer})

    with pytest.raises(ServerAwayError, match="/tokenize"):
        await client.tokenize({"prompt": "x"})
