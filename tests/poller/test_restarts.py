"""Servers that go, come back, start anew or turn into others, and what is noted of it."""

import re

from app.core.loads import LoadSource
from app.ledger import runs
from app.poller.presence import NOTED_AFTER_S
from app.simulator.server import SimulatorThread
from tests.poller.conftest import MakeDesk, StartServer
from tests.poller.desk import Desk
from tests.poller.traffic import ask, listener, never_answer
from tests.waiting import come_back, die


async def warm(server: SimulatorThread, desk: Desk, *, tokens: int = 300) -> None:
    """Let the counters be worth something, and known."""
    await ask(server, max_new_tokens=tokens)
    await desk.look()
    await desk.look()


async def test_a_server_that_dies_is_lost_once_and_back_once(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    await warm(server, desk)
    last = desk.load
    await die(server)

    away = await desk.look()
    assert away.away_since is not None
    assert away.trouble == "does not answer (connection refused)"
    assert away.at == last.at  # the figures are those of then, and say so
    assert away.running_requests == last.running_requests
    assert away.kv_capacity_tokens == last.kv_capacity_tokens
    later = await desk.look(ahead_s=200)
    assert later.away_since == away.away_since

    await come_back(server)
    back = await desk.look()
    await desk.look()

    assert back.away_since is None
    assert back.trouble == ""
    assert back.n_restarts == 1
    assert back.started_at is not None
    assert back.at is not None
    assert last.at is not None
    assert back.at > last.at
    lost, returned = desk.entries()
    assert lost == f"server lost | {server.url}: connection refused"
    assert re.fullmatch(rf"server back \| {server.url}: away for 3m 2\ds, started anew", returned)


async def test_a_restart_gives_no_negative_figure_and_begins_its_windows_anew(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    await warm(server, desk, tokens=900)
    await die(server)
    await come_back(server)

    await ask(server, max_new_tokens=30)
    first = await desk.look()  # nobody saw it away: only its counters tell
    assert first.n_restarts == 1
    assert first.tokens_per_s is None
    assert first.retracted_requests is None
    assert first.n_first_tokens is None
    await ask(server, max_new_tokens=30)
    second = await desk.look(ahead_s=5)

    assert second.n_restarts == 1
    assert second.tokens_per_s is not None
    assert second.tokens_per_s > 0
    assert second.n_first_tokens == 1
    assert desk.events_noted() == ["server restarted"]


async def test_a_restart_without_counters_is_seen_by_its_start(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server(enable_metrics=False)
    desk = make_desk(server.url)
    assert (await desk.look()).source is LoadSource.LOADS
    await die(server)
    await desk.look()
    await come_back(server)

    load = await desk.look()
    await desk.look()

    assert load.n_restarts == desk.load.n_restarts == 1
    assert desk.events_noted() == ["server lost", "server back"]
    assert desk.entries()[-1].endswith("started anew")


async def test_a_return_without_a_restart_says_so(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    """A network that was gone: the same process answers again."""
    server = start_server(unavailable=False)
    desk = make_desk(server.url)
    await warm(server, desk)
    server.set(unavailable=True)
    load = await desk.look()
    assert load.away_since is None  # it answers, if only with 503
    assert "answers 503" in load.trouble

    server.set(unavailable=False)
    load = await desk.look()

    assert load.n_restarts == 0
    assert load.trouble == ""
    assert desk.entries() == []


async def test_another_model_after_a_restart_is_noted_and_said(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    await warm(server, desk)
    await die(server)
    await desk.look()
    server.set(model_path="/models/other", kv_tokens=50_000)
    await come_back(server)

    load = await desk.look()

    assert load.model_path == "/models/other"
    assert load.kv_capacity_tokens == 50_000
    assert load.trouble == "server changed: model_path /models/toy -> /models/other"
    assert desk.entries()[-1] == (
        f"server differs | {server.url}: model_path /models/toy -> /models/other"
    )
    assert desk.stored_facts()["model_path"] == "/models/other"
    assert (await desk.look()).trouble == load.trouble
    assert desk.events_noted().count("server differs") == 1


async def test_other_weights_than_the_ledger_held_are_noted_at_first_contact(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server(weight_version="v2", api_key="k-9999")
    desk = make_desk(server.url, api_key="k-9999")
    desk.remember(model_path="/models/toy", weight_version="v1")

    load = await desk.look()

    assert load.trouble == "server changed: weight_version v1 -> v2"
    assert desk.entries() == [f"server differs | {server.url}: weight_version v1 -> v2"]
    stored = desk.stored_facts()
    assert (stored["weight_version"], stored["kv_capacity_tokens"]) == ("v2", 231_000)
    assert stored["max_running"] == 256
    assert "k-9999" not in str(stored)


async def test_a_server_that_the_ledger_does_not_know_has_not_changed(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)

    load = await desk.look()

    assert load.trouble == ""
    assert desk.entries() == []
    assert desk.stored_facts()["version"] == "0.5.23"


async def test_facts_are_read_once_and_again_after_a_return(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    for _ in range(3):
        await desk.look()
    assert server.stats.http_requests["/server_info"] == 1
    await die(server)
    await desk.look()
    await come_back(server)
    await desk.look()
    await desk.look()

    assert server.stats.http_requests["/server_info"] == 2


async def test_facts_that_hang_cost_no_figures_and_come_later(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server(info_delay_s=30.0)
    desk = make_desk(server.url, poll_s=10.0)

    load = await desk.look()
    assert load.running_requests == 0
    assert load.version is None
    assert load.max_running_requests is None
    assert load.trouble == ""
    n_asked = server.stats.http_requests["/server_info"]
    server.set(info_delay_s=0.0)
    await desk.look()
    assert server.stats.http_requests["/server_info"] == n_asked  # not at every look

    load = await desk.look(ahead_s=11)
    assert load.version == "0.5.23"
    assert load.max_running_requests == 256


async def test_silence_is_said_at_once_and_noted_after_a_while(make_desk: MakeDesk) -> None:
    async with listener(never_answer) as url:
        desk = make_desk(url, poll_s=10.0)

        load = await desk.look()
        assert load.away_since is not None
        assert "no answer within" in load.trouble
        assert desk.entries() == []
        await desk.look(ahead_s=NOTED_AFTER_S)

        assert desk.events_noted() == ["server lost"]
        assert desk.load.running_requests is None
        await desk.poller.close()


async def test_a_service_that_starts_anew_goes_on_with_a_lost_server(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    await desk.look()
    await die(server)
    lost = await desk.look()
    await desk.poller.close()

    desk.poller = desk.make_poller()
    load = await desk.look(ahead_s=600)
    assert load.away_since is not None
    assert lost.away_since is not None
    assert abs((load.away_since - lost.away_since).total_seconds()) < 1
    assert desk.events_noted() == ["server lost"]
    await come_back(server)
    await desk.look()

    assert desk.events_noted() == ["server lost", "server back"]
    assert "away for 10m" in desk.entries()[-1]


async def test_every_live_run_of_a_server_gets_the_entry(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    other = desk.home.add_run("second")
    await desk.look()
    assert server.stats.http_requests["/metrics"] == 1
    await die(server)
    await desk.look()

    for run_id in (desk.home.run_id, other):
        assert [entry.partition(" | ")[0] for entry in desk.entries(run_id)] == ["server lost"]
        assert runs.get_run(desk.home.ledger, run_id).state == "running"


async def test_last_good_at_is_written_no_oftener_than_every_ten_seconds(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    await desk.look()
    first = desk.last_good_at()
    await desk.look(ahead_s=4)
    assert desk.last_good_at() == first

    await desk.look(ahead_s=7)
    second = desk.last_good_at()

    assert first is not None
    assert second is not None
    assert (second - first).total_seconds() >= 10
    await die(server)
    await desk.look(ahead_s=60)
    assert desk.last_good_at() == second
