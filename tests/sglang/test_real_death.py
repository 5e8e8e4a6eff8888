"""What a killed real server leaves to its clients, and that it comes back the same.

These are the facts which resuming rests on: a cut stream has no end mark, and the same server
started again goes on from the ids that came before the cut.
"""

import httpx
import pytest

from tests.contract.exchange import Json, generate, joined_ids, live_stream, open_client
from tests.contract.exchange import request_body as body_of
from tests.sglang.real_server import RealServer

PROMPT = "A rollout server asks an engine for tokens"


def events_until_killed(
    client: httpx.Client, server: RealServer, prompt_ids: list[int]
) -> list[Json]:
    events: list[Json] = []
    try:
        with live_stream(client, body_of(prompt_ids, max_new_tokens=4000)) as stream:
            for event in stream:
                if not events:
                    server.kill9()
                events.append(event)
    except httpx.TransportError:
        return events
    pytest.fail("the stream of a killed server ended as if it were whole")


def test_a_killed_server_cuts_its_stream_and_a_new_one_continues_the_answer(
    doomed_server: RealServer,
) -> None:
    with open_client(doomed_server.url) as client:
        prompt_ids = client.post("/tokenize", json={"prompt": PROMPT}).json()["tokens"]
        events = events_until_killed(client, doomed_server, prompt_ids)

        with pytest.raises(httpx.ConnectError):
            client.get("/health")
        kept = joined_ids(tuple(events), incremental=False)
        assert events[-1]["meta_info"]["finish_reason"] is None

        doomed_server.restart()
        rest = generate(client, prompt_ids + kept, max_new_tokens=30)["output_ids"]
        whole = generate(client, prompt_ids, max_new_tokens=len(kept) + 30)["output_ids"]

    assert kept + rest == whole


def test_a_terminated_server_finishes_the_stream_that_runs(doomed_server: RealServer) -> None:
    with open_client(doomed_server.url) as client:
        prompt_ids = client.post("/tokenize", json={"prompt": PROMPT}).json()["tokens"]
        with live_stream(client, body_of(prompt_ids, max_new_tokens=600)) as stream:
            events = [next(stream)]
            doomed_server.ask_to_end()
            events += stream
        doomed_server.terminate()

    assert len(events[-1]["output_ids"]) == 600
    assert events[-1]["meta_info"]["finish_reason"] == {"type": "length", "length": 600}
