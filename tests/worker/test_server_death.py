"""A server that dies under answers in the making: they are continued, and a poisonous one found."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.events import ServerBack, ServerLost
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import encode_chat
from tests.stage import Stage, random_texts
from tests.waiting import Shift, come_back, die, kept_alive
from tests.worker.oracle import assert_true_answers, twice_made_tokens

STREAM_INTERVAL_TOKENS = 64


async def die_and_come_back(simulator: SimulatorThread, shift: Shift) -> None:
    seen = len(shift.heard(ServerLost))
    await die(simulator)
    await shift.until(lambda: len(shift.heard(ServerLost)) > seen, "the loss of the server")
    await come_back(simulator)


async def test_answers_cut_by_a_dead_server_are_continued_by_its_successor(
    tmp_path: Path,
) -> None:
    with SimulatorThread(port=0, incremental=True, time_factor=80) as simulator:
        stage = Stage(tmp_path, simulator.url, concurrency=16, max_new_tokens=3_000)
        stage.fill(random_texts(20, seed=3, mark="@@len=2500"))
        stats = simulator.stats

        async with stage.shift() as shift:
            await shift.until(lambda: stats.delivered_tokens >= 16_000, "tokens")
            await die_and_come_back(simulator, shift)
            await shift.until(lambda: stats.delivered_tokens >= 32_000, "more tokens")
            await die_and_come_back(simulator, shift)
            await shift.until(lambda: stage.partition().is_over, "the end")

        assert len(shift.heard(ServerBack)) == 3
        assert_true_answers(stage, simulator)
        # Lost with each death: per stream what was not yet an event, and one event on the wire.
        assert twice_made_tokens(stage, simulator) <= 2 * 16 * 2 * STREAM_INTERVAL_TOKENS
        assert {row["charged"] for row in stage.rows().values()} == {0}
        stage.assert_consistent()


async def test_a_cut_by_a_living_server_is_charged_only_if_it_brought_nothing(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    # The third request of "new" goes on from the 100th token; its answer is cut no more.
    simulator.set(instant=True)
    simulator.script({"@@new": [{"cut_after": 100}, {"model": True}], "*": [{"model": True}]})
    stage = Stage(tmp_path, simulator.url, plan_changes={"backoff_first_s": 0.05})
    stage.fill(["first @@len=50", "a @@len=300 @@new"], ["first", "new"])

    await stage.work()

    assert_true_answers(stage, simulator)
    assert [s["from_token"] for s in stage.answers()["new"]["segments"]] == [0, 100]
    assert stage.rows()["new"]["charged"] == 0
    stage.assert_consistent()


def lost_by(shift: Shift) -> Callable[[], int]:
    return lambda: len(shift.heard(ServerLost))


@pytest.mark.parametrize("way", ["exit", "poisonous id"])
async def test_a_sample_that_kills_the_server_runs_alone_and_fails_at_the_third_death(
    simulator: SimulatorThread, tmp_path: Path, way: str
) -> None:
    texts = ["poison @@exit" if way == "exit" else "poison", *random_texts(11, seed=1)]
    simulator.script({"@@exit": ["exit"], "*": ["ok delay=0.15"]})
    ids = [encode_chat([{"role": "user", "content": text}]) for text in texts]
    if way == "poisonous id":
        ids[0] = [*ids[0], simulator.settings.vocabulary_size]
    stage = Stage(tmp_path, simulator.url, concurrency=4, plan_changes={"backoff_first_s": 0.05})
    # Not the first row: that one would be on trial, and so always alone.
    order = [*range(1, 12)]
    order.insert(6, 0)
    stage.fill_with([texts[n] for n in order], [ids[n] for n in order], [f"r{n}" for n in order])

    async with stage.shift() as shift, kept_alive(simulator, lost_by(shift)):
        await shift.until(lambda: stage.partition().is_over, "the end")

    rows = stage.rows()
    assert rows["r0"]["state"] == "failed"
    assert "died 3 times" in rows["r0"]["reason"]
    assert "alone" in rows["r0"]["reason"]
    assert stage.partition().counts.ok == 11
    assert len(shift.heard(ServerLost)) == 3
    assert max(row["server_deaths"] for key, row in rows.items() if key != "r0") <= 2
    assert {row["charged"] for key, row in rows.items() if key != "r0"} == {0}
    if way == "exit":
        last = [e for e in simulator.stats.requests() if e.row == "poison @@exit"][-1]
        beside = [
            e
            for e in simulator.stats.requests()
            if e is not last
            and e.received_at < (last.ended_at or 0)
            and (e.ended_at or 0) > last.received_at
        ]
        assert beside == []
    stage.assert_consistent()
