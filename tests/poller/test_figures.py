"""The figures of a look: from which source, true to the server, and None where nothing is told."""

from dataclasses import fields

import pytest

from app.core.loads import LoadSource, ServerLoad
from tests.poller.conftest import MakeDesk, StartServer
from tests.poller.traffic import ask, in_flight, more_tokens
from tests.waiting import wait_until

FIGURES = [
    "running_requests",
    "waiting_requests",
    "kv_used_tokens",
    "kv_reclaimable_tokens",
    "kv_free_tokens",
    "used_ratio",
    "tokens_per_s",
    "prefix_hit_ratio",
    "retracted_requests",
    "first_token_p50_s",
    "first_token_p99_s",
    "n_first_tokens",
]
NO_LOADS = {"/v1/loads": [404, {"detail": "Not Found"}]}


def known(load: ServerLoad) -> dict[str, object]:
    values = {each.name: getattr(load, each.name) for each in fields(load) if each.name in FIGURES}
    return {name: value for name, value in values.items() if value is not None}


async def test_the_figures_are_those_of_the_server(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server(max_running=3, kv_tokens=90_000)
    desk = make_desk(server.url)
    await ask(server)
    async with in_flight(server, 5):
        await wait_until(lambda: server.counters.queued == 2, "two waiting")
        await desk.look()
        before, began = server.ask(lambda m: m.figures.decode_tokens), desk.clock.monotonic()
        await wait_until(lambda: desk.clock.monotonic() - began > 1.0, "a second of work")
        load = await desk.look()
        made = server.ask(lambda m: m.figures.decode_tokens) - before
        took_s = desk.clock.monotonic() - began

    assert load.source is LoadSource.METRICS
    assert load.trouble == ""
    assert load.away_since is None
    assert load.at is not None
    assert (load.running_requests, load.waiting_requests) == (3, 2)
    assert load.max_running_requests == 3
    assert load.kv_capacity_tokens == 90_000
    assert load.kv_used_tokens is not None
    assert load.kv_reclaimable_tokens is not None
    assert load.kv_free_tokens is not None
    assert load.kv_used_tokens > 0
    assert load.kv_reclaimable_tokens > 0  # the answer that has ended is still in the cache
    pool = load.kv_used_tokens + load.kv_reclaimable_tokens + load.kv_free_tokens
    assert pool == 90_000
    assert load.used_ratio == pytest.approx(load.kv_used_tokens / 90_000, abs=0.01)
    assert load.tokens_per_s == pytest.approx(made / took_s, rel=0.25)
    assert load.progressed_at is not None
    assert load.retracted_requests == 0
    assert load.version == "0.5.23"
    assert load.model_path == "/models/toy"
    assert load.n_ranks == 1


async def test_first_tokens_and_prefix_hits_are_those_of_the_window(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server(instant=False)
    desk = make_desk(server.url)
    await ask(server)
    load = await desk.look()
    assert load.n_first_tokens is None
    assert load.prefix_hit_ratio is None

    for _ in range(3):  # the same prompt, which the cache holds by now
        await ask(server)
    load = await desk.look()

    assert load.n_first_tokens == 3
    assert load.first_token_p50_s is not None
    assert load.first_token_p99_s is not None
    assert 0 < load.first_token_p50_s <= load.first_token_p99_s
    assert not load.first_token_p99_is_more
    assert load.prefix_hit_ratio is not None
    assert load.prefix_hit_ratio > 0.8


async def test_retractions_of_the_last_ten_minutes(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server(kv_tokens=6_000, time_factor=20.0, tensor_parallel_ranks=4)
    desk = make_desk(server.url)
    async with in_flight(server, 6, max_new_tokens=400):
        await wait_until(lambda: server.ask(lambda m: m.figures.decode_tokens) > 0, "first tokens")
    await desk.look()
    # Without ignore_eos the scheduler is an optimist, and has to throw some out later.
    server.ask(lambda m: setattr(m.figures, "retractions", 5))

    assert (await desk.look()).retracted_requests == 5
    assert (await desk.look(ahead_s=700)).retracted_requests in (0, None)
    assert (await desk.look(ahead_s=5)).retracted_requests == 0


@pytest.mark.parametrize(
    ("version", "has_split", "has_retracted"),
    [
        ("0.5.6", False, False),
        ("0.5.9", False, True),
        ("0.5.12.post1", True, True),
        ("0.5.23", True, True),
    ],
)
async def test_what_each_version_tells(
    start_server: StartServer,
    make_desk: MakeDesk,
    version: str,
    has_split: bool,
    has_retracted: bool,
) -> None:
    server = start_server(version=version)
    desk = make_desk(server.url)
    async with in_flight(server, 2):
        await wait_until(
            lambda: server.ask(lambda m: m.engine.throughput_tokens_per_s) > 0, "a measured speed"
        )
        await desk.look()
        await more_tokens(server)
        load = await desk.look()

    assert load.source is LoadSource.METRICS
    assert load.running_requests == 2
    assert load.kv_used_tokens is not None
    assert load.used_ratio is not None
    assert load.tokens_per_s is not None
    assert load.tokens_per_s > 0
    assert (load.kv_free_tokens is not None) is has_split
    assert (load.kv_reclaimable_tokens is not None) is has_split
    assert (load.retracted_requests is not None) is has_retracted


async def test_srv_21_ranks_are_grouped_not_added_up(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    text = "".join(f'sglang:num_running_reqs{{tp_rank="{n}"}} 4\n' for n in range(3))
    server.script(None, endpoints={"/metrics": ["text", text]})
    desk = make_desk(server.url)

    load = await desk.look()

    assert load.source is LoadSource.METRICS
    assert known(load) == {"running_requests": 4}


@pytest.mark.parametrize("answer", [[404, {"detail": "Not Found"}], ["text", ""]])
async def test_srv_21_no_metrics_is_not_available_and_never_zero(
    start_server: StartServer, make_desk: MakeDesk, answer: list[object]
) -> None:
    server = start_server()
    server.script(None, endpoints={"/metrics": answer, **NO_LOADS})
    desk = make_desk(server.url)

    load = await desk.look()

    assert load.source is LoadSource.NONE
    assert known(load) == {}
    assert load.at is None
    assert load.away_since is None
    assert "--enable-metrics" in load.trouble
    assert load.version == "0.5.23"  # facts are no figures
    assert desk.last_good_at() is not None


async def test_without_metrics_the_loads_are_shown_and_named(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server(enable_metrics=False, max_running=2)
    desk = make_desk(server.url)
    async with in_flight(server, 3):
        await wait_until(lambda: server.counters.queued == 1, "one waiting")
        await desk.look()
        await more_tokens(server)
        load = await desk.look()

    assert load.source is LoadSource.LOADS
    assert load.trouble == ""
    assert (load.running_requests, load.waiting_requests) == (2, 1)
    assert load.max_running_requests == 2
    assert load.kv_capacity_tokens == 231_000
    assert load.tokens_per_s is None
    assert load.kv_free_tokens is None
    assert load.progressed_at is not None


async def test_metrics_that_are_switched_off_leave_no_old_figures(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    assert (await desk.look()).running_requests == 0

    server.script(None, endpoints={"/metrics": [404, ""], **NO_LOADS})

    assert known(await desk.look()) == {}


async def test_a_hung_scheduler_still_tells_figures_but_does_not_progress(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    async with in_flight(server, 2):
        await more_tokens(server)
        await desk.look()
        await more_tokens(server)
        moving = await desk.look()
        server.freeze()
        await desk.look()
        frozen = await desk.look()
        again = await desk.look()

    assert moving.progressed_at is not None
    assert frozen.progressed_at == again.progressed_at
    assert again.at is not None
    assert frozen.at is not None
    assert again.at > frozen.at


async def test_the_key_is_sent_where_it_is_needed(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server(api_key="k-1234", enable_metrics=False)
    desk = make_desk(server.url, api_key="k-1234")

    load = await desk.look()

    assert load.source is LoadSource.LOADS
    assert load.trouble == ""
    assert load.version == "0.5.23"


async def test_a_wrong_key_is_said_and_metrics_come_all_the_same(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server(api_key="k-1234")
    desk = make_desk(server.url, api_key="wrong-key")

    load = await desk.look()

    assert load.running_requests == 0
    assert load.source is LoadSource.METRICS
    assert "refuses (401)" in load.trouble
    assert "LONGWATCH_API_KEY" in load.trouble
    assert "wrong-key" not in load.trouble
    assert load.version is None


def counted(decoded: int, cached: int, prompts: int) -> dict[str, list[str]]:
    """Return a /metrics whose gauge of throughput is far from what its counter says."""
    lines = (
        'sglang:gen_throughput{tp_rank="0"} 9999',
        *(f'sglang:realtime_tokens_total{{mode="decode",dp_rank="{n}"}} {decoded}' for n in (0, 1)),
        f'sglang:cached_tokens_total{{cache_source="total"}} {cached}',
        f"sglang:prompt_tokens_total {prompts}",
    )
    return {"/metrics": ["text", "\n".join(lines)]}


async def test_speed_is_counted_where_tokens_are_counted_as_they_are_made(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    server.script(None, endpoints=counted(1_000, 50, 100))
    assert (await desk.look()).tokens_per_s is None

    server.script(None, endpoints=counted(1_500, 80, 200))
    load = await desk.look(ahead_s=50)

    assert load.tokens_per_s == pytest.approx(20.0, rel=0.05)  # 2 ranks, 500 each in 50 s


async def test_old_servers_tell_prefix_hits_by_the_requests_that_ended(
    start_server: StartServer, make_desk: MakeDesk
) -> None:
    server = start_server()
    desk = make_desk(server.url)
    for cached, prompts in ((50, 100), (80, 200)):
        text = counted(0, cached, prompts)["/metrics"][1]
        old = "\n".join(line for line in text.splitlines() if "realtime" not in line)
        server.script(None, endpoints={"/metrics": ["text", old]})
        load = await desk.look()

    assert load.prefix_hit_ratio == pytest.approx(0.3)
    assert load.tokens_per_s == 9999
    assert load.retracted_requests is None
