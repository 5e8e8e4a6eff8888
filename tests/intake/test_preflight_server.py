"""What a start finds out from the servers: waiting, facts, limits and the chat template."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace

from pydantic import SecretStr

from app.core.spec import LengthPolicy
from app.simulator.server import SimulatorThread
from tests.intake.desk import Desk, until, user

NO_INFO_ROUTES = {
    path: [404, ""]
    for path in (
        "/server_info",
        "/get_server_info",
        "/model_info",
        "/get_model_info",
        "/v1/models",
    )
}


async def test_srv_25_a_server_that_still_loads_is_waited_for_with_a_counter(
    desk: Desk,
) -> None:
    desk.write("p", [user("a1", "x")])
    desk.simulator.stop()

    checking = asyncio.create_task(desk.check())
    await until(lambda: any("connection refused" in said for said in desk.said), "refused")
    desk.simulator.set(loading=True)
    await asyncio.to_thread(desk.simulator.start)
    await until(lambda: any("/health answers 503" in said for said in desk.said), "loading")
    desk.simulator.set(loading=False)
    report = await checking

    assert report.errors == ()
    assert report.facts[desk.simulator.url].context_tokens == 32_768
    assert all(f"waiting for {desk.simulator.url}, " in said for said in desk.said)
    assert all(" of 20 s: it " in said for said in desk.said)
    assert len(desk.said) == 2  # told when it changes, not at every look
    assert "/generate" not in desk.simulator.stats.http_requests


async def test_srv_25_a_server_that_does_not_come_is_an_error_after_the_set_time(
    desk: Desk,
) -> None:
    desk.write("p", [user("a1", "x")])
    desk.simulator.set(loading=True)
    desk.change(startup_wait_s=0.2)

    report = await desk.check()

    (error,) = report.errors
    assert f"{desk.simulator.url} is not ready (/health answers 503), after 0 s of waiting" in error
    assert "[run] startup_wait_s in the spec" in error
    assert report.facts == {}


async def test_a_server_is_not_waited_for_while_something_of_ours_is_wrong(desk: Desk) -> None:
    desk.own("gone")
    desk.simulator.set(loading=True)
    desk.change(startup_wait_s=10_000)

    report = await desk.check()

    assert len(report.errors) == 2
    assert "partition gone" in report.errors[0]
    assert "is not ready" in report.errors[1]
    assert desk.said == []


async def test_a_name_that_does_not_resolve_is_an_error_at_once(desk: Desk) -> None:
    desk.write("p", [user("a1", "x")])
    desk.url("http://no-such-host.invalid:30000")
    desk.change(startup_wait_s=10_000)

    report = await desk.check()

    (error,) = report.errors
    assert "the name no-such-host.invalid cannot be resolved" in error
    assert desk.said == []


async def test_an_address_that_is_none_is_an_error_at_once(desk: Desk) -> None:
    desk.write("p", [user("a1", "x")])
    desk.url("localhost:30000")
    desk.change(startup_wait_s=10_000)

    report = await desk.check()

    assert 'did you mean "http://localhost:30000"?' in report.errors[0]


async def test_srv_24_all_names_of_the_info_routes_serve(desk: Desk) -> None:
    desk.write("p", [user("a1", "x")])

    for old in ("/server_info", "/model_info"):
        desk.simulator.script(endpoints={old: [404, ""]})
        report = await desk.check()
        assert report.errors == ()
        assert report.facts[desk.simulator.url].context_tokens == 32_768


async def test_srv_24_without_info_routes_limits_are_unknown_and_said_to_be(desk: Desk) -> None:
    desk.write("p", [user("a1", "x"), user("a2", "y")])
    desk.simulator.script(endpoints=NO_INFO_ROUTES)

    report = await desk.check()

    assert report.errors == ()
    assert [one for one in report.notices if "does not tell its limits" in one]
    partition = await desk.run()
    assert (partition.intake, partition.n_tokenized) == ("tokenized", 2)


async def test_a_missing_key_is_an_error_with_the_remedy(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(api_key="sesame")
    desk.write("p", [user("a1", "x")])

    refused = await desk.check()
    allowed = await desk.check(api_key=SecretStr("sesame"))

    (error,) = refused.errors
    assert "(401)" in error
    assert "LONGWATCH_API_KEY" in error
    assert allowed.errors == ()


async def test_inp_09_a_template_that_refuses_too_much_stops_the_start(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(template="toy-strict")
    system = {"role": "system", "content": "s"}
    turn = {"role": "user", "content": "u"}
    rows = {"p1": [turn], "p2": [system, turn], "p3": [turn, turn]}
    desk.write("p", [{"id": key, "messages": turns} for key, turns in rows.items()])

    strict = await desk.check()
    desk.change(max_template_error_share=0.9)
    lenient = await desk.check()

    (error,) = strict.errors
    assert "2 of the first 3 prompts will be rejected" in error
    assert "System role not supported" in error
    assert lenient.errors == ()
    assert "2 of the first 3 prompts" in lenient.warnings[0]
    partition = await desk.run()
    rows_by_key = desk.by_key()
    assert (partition.counts.pending, partition.counts.rejected) == (1, 2)
    assert "System role not supported" in rows_by_key["p2"]["reason"]
    assert "must alternate" in rows_by_key["p3"]["reason"]


async def test_inp_10_the_first_prompt_is_shown_decoded(desk: Desk) -> None:
    desk.write("p", [user("a1", "Hi")])

    report = await desk.check()

    (notice,) = [one for one in report.notices if "its first prompt" in one]
    assert "begin 'user:Hi" in notice


async def test_inp_10_a_template_that_doubles_the_start_token_is_refused(desk: Desk) -> None:
    desk.write("p", [user("a1", "x")])
    desk.simulator.script(endpoints={"/tokenize": ["json!", {"tokens": [1, 1, 120]}]})

    report = await desk.check()

    (error,) = report.errors
    assert "writes the start token (1) twice" in error


async def test_raw_ids_need_a_known_vocabulary(desk: Desk) -> None:
    desk.write("p", [{"id": "r", "input_ids": [1, 2, 3]}])

    unknown = await desk.check()
    desk.change(vocabulary_size=2048)
    known = await desk.check()

    (error,) = unknown.errors
    assert "set vocabulary_size in [run]" in error
    assert known.errors == ()


async def test_the_vocabulary_is_read_beside_a_model_on_this_machine(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk()
    model = desk.folder / "model"
    model.mkdir()
    (model / "config.json").write_text('{"text_config": {"vocab_size": 1000}}')
    desk.simulator.set(model_path=str(model))
    desk.write("p", [{"id": "r", "input_ids": [999]}, {"id": "s", "input_ids": [1000]}])

    report = await desk.check()

    assert report.errors == ()
    assert "input_ids holds 1000, the vocabulary has 1000 ids" in report.warnings[0]


async def test_a_server_that_dies_of_an_abort_is_refused(desk: Desk) -> None:
    desk.write("p", [{"id": "r", "input_ids": [1]}])
    desk.change(vocabulary_size=2048)

    desk.simulator.set(version="0.5.4.post3")
    refused = await desk.check()
    desk.simulator.set(version="0.5.5")
    warned = await desk.check()

    assert "ends when a waiting stream is aborted" in refused.errors[0]
    assert warned.errors == ()
    assert "may end when a waiting stream is aborted" in warned.warnings[0]


async def test_an_answer_limit_as_large_as_the_context_is_told(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(context_length=64)
    desk.write("p", [user("a1", "x")])

    clamped = await desk.check()
    desk.change(length_policy=LengthPolicy.REJECT)
    rejected = await desk.check()

    assert clamped.errors == ()
    assert "every answer gets what its prompt leaves" in clamped.warnings[0]
    assert "every prompt would be rejected" in rejected.errors[0]


async def test_a_second_server_may_be_away_but_not_another_model(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk()
    desk.write("p", [user("a1", "x")])
    with socket.create_server(("127.0.0.1", 0)) as free:
        away = f"http://127.0.0.1:{free.getsockname()[1]}"
    with SimulatorThread(replace(desk.simulator.settings, port=0, model_path="/other")) as other:
        desk.change(startup_wait_s=0, server_urls=(desk.simulator.url, away))
        one_away = await desk.check()
        desk.change(server_urls=(desk.simulator.url, other.url))
        unlike = await desk.check()

    assert one_away.errors == ()
    assert f"{away} does not answer (connection refused)" in one_away.warnings[0]
    assert "differ: model_path /models/toy and /other" in unlike.errors[0]
