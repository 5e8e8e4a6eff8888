"""Truncated answers go on: only what is new is generated, and the joined ids are the right ones.

The simulated model is a function of the prompt, so an answer made in two pieces is compared, id by
id, with the one that a single request with the higher limit would have made.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.core.spec import ClassSpec, PartitionSpec, RunSpec, to_json
from app.extending import Longer, extend
from app.files.shards import read_line
from app.ledger import runs, shards
from app.ledger.counters import recount
from app.simulator.answers import answer
from app.simulator.server import SimulatorThread
from tests.stage import Stage, random_texts
from tests.waiting import Shift

SHORT, LONG = 16, 48
LENGTHS = (40, 8, 100, 16, 17, 30, 200, 12)  # of each eight answers


def make_stage(
    folder: Path,
    simulator: SimulatorThread,
    n: int = 16,
    *,
    limit: int = SHORT,
    mark: str = "",
    sampling: Mapping[str, object] | None = None,
) -> Stage:
    changes: dict[str, object] = {"sampling": sampling or {}, "backoff_first_s": 0.01}
    stage = Stage(folder, simulator.url, concurrency=8, max_new_tokens=limit, plan_changes=changes)
    texts = random_texts(n, seed=4)
    stage.fill([f"{text} {mark or f'@@len={LENGTHS[k % 8]}'}" for k, text in enumerate(texts)])
    spec = RunSpec(
        name="test",
        server_urls=(simulator.url,),
        prompts_dir="-",
        output_dir=str(stage.output),
        classes={"short": ClassSpec(concurrency=8, max_new_tokens=limit)},
        partitions={"p": PartitionSpec(class_name="short")},
        sampling=sampling or {},
    )
    with stage.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE run SET spec_json = ?", (to_json(spec),))
    return stage


def order(stage: Stage, n: int = LONG) -> str:
    run = runs.get_run(stage.ledger, stage.run_id)
    wanted = Longer(partition="p", max_new_tokens=n)
    return extend(stage.ledger, run, wanted, who="operator", now=stage.clock.now()).sentence


def valid(stage: Stage) -> list[dict[str, Any]]:
    """Return the valid lines in input order, as a seal or an export would read them."""
    places = shards.valid_lines(stage.ledger, stage.partition_id, -1, 10_000)
    lines = [read_line(Path(one.path), one.offset, one.n_bytes) for _, one in places]
    return [orjson.loads(line) for line in lines]


def due(stage: Stage, simulator: SimulatorThread, limit: int) -> list[list[int]]:
    lengths = simulator.settings.lengths
    return [list(answer(prompt, lengths, limit)) for prompt in stage.prompts.values()]


def ids(lines: list[dict[str, Any]]) -> list[list[int]]:
    return [line["output_ids"] for line in lines]


def assert_whole(stage: Stage, simulator: SimulatorThread, limit: int = LONG) -> None:
    assert ids(valid(stage)) == due(stage, simulator, limit)
    assert recount(stage.ledger, stage.partition_id) == []
    view = stage.partition()
    assert (view.counts.running, view.counts.pending, view.tokens.held) == (0, 0, 0)
    assert view.tokens.received == view.tokens.kept + view.tokens.wasted


async def test_extending_generates_only_what_is_new(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    stage = make_stage(tmp_path, simulator)
    await stage.work()
    assert ids(valid(stage)) == due(stage, simulator, SHORT)
    before, made = stage.partition(), simulator.stats.generated_tokens
    assert before.counts.truncated == 10

    said = order(stage)

    assert "10 truncated -> 10 pending again" in said
    assert stage.partition().tokens == before.tokens
    assert ids(valid(stage)) == due(stage, simulator, SHORT)  # an export in between
    await stage.work()
    assert_whole(stage, simulator)
    new = [len(one) - SHORT for one in due(stage, simulator, LONG) if len(one) > SHORT]
    assert simulator.stats.generated_tokens - made == sum(new)
    assert stage.partition().tokens.wasted == 0
    segments = [len(line["segments"]) for line in valid(stage)]
    assert segments.count(2) == len(new) == 10
    assert {line["max_new_tokens"] for line in valid(stage)} == {SHORT, LONG}


async def test_an_answer_is_extended_again_and_again(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    stage = make_stage(tmp_path, simulator)
    await stage.work()
    for limit in (20, 33, 150):
        order(stage, limit)
        await stage.work()
        assert_whole(stage, simulator, limit)
    assert stage.partition().tokens.wasted == 0
    starts = [[one["from_token"] for one in line["segments"]] for line in valid(stage)]
    assert starts.count([0, 16, 20, 33]) == 6


async def test_stop_strings_take_their_tail_anew(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    stage = make_stage(tmp_path, simulator, sampling={"stop": "##"})
    await stage.work()
    made = simulator.stats.generated_tokens
    order(stage)
    await stage.work()
    assert_whole(stage, simulator)
    new = [len(one) - SHORT for one in due(stage, simulator, LONG) if len(one) > SHORT]
    assert simulator.stats.generated_tokens - made == sum(new) + 2 * len(new)
    assert stage.partition().tokens.wasted == 2 * len(new)


async def test_a_limit_that_is_raised_under_a_living_worker_reaches_it_and_what_it_runs(
    tmp_path: Path,
) -> None:
    with SimulatorThread(port=0, time_factor=3) as simulator:
        stage = make_stage(tmp_path, simulator, n=24)
        async with stage.shift() as shift:
            await shift.until(lambda: stage.partition().counts.truncated >= 2, "two cut short")
            await shift.until(lambda: simulator.stats.running > 0, "some in flight")
            await asyncio.to_thread(order, stage)
            await shift.until(lambda: stage.partition().is_over, "the end")
        assert stage.partition().counts.failed == 0
        done = valid(stage)
        # What was claimed before ended at the old limit and went on; the race of the order with
        # a tick is the one place where an answer may have been settled just before.
        if any(len(line["output_ids"]) == SHORT < len(one) for line, one in _pairs(stage, done)):
            order(stage)
            await stage.work()
        assert_whole(stage, simulator)


def _pairs(stage: Stage, lines: list[dict[str, Any]]) -> list[tuple[Mapping[str, Any], list[int]]]:
    lengths = [list(range(LENGTHS[k % 8])) for k in range(len(stage.prompts))]
    return list(zip(lines, lengths, strict=True))


async def test_an_answer_in_flight_goes_on_past_its_old_limit(tmp_path: Path) -> None:
    with SimulatorThread(port=0, time_factor=2) as simulator:
        stage = make_stage(tmp_path, simulator, n=1, limit=200, mark="@@len=260")
        async with stage.shift() as shift:
            await shift.until(lambda: stage.partition().tokens.held > 0, "its first tokens")
            assert stage.partition().counts.running == 1
            told = await asyncio.to_thread(order, stage, 240)
            assert "the limit is for those still to come" in told
            await shift.until(lambda: _limit_of(shift) == 240, "the worker to know")
            assert stage.partition().counts.running == 1
            await shift.until(lambda: stage.partition().is_over, "the end")
        assert_whole(stage, simulator, 240)
        (line,) = valid(stage)
        assert len(line["segments"]) == 2
        assert (line["attempts"], line["max_new_tokens"]) == (2, 240)
        assert stage.rows()["row0"]["charged"] == 0


def _limit_of(shift: Shift) -> int:
    return shift.worker._dispatcher.limit_tokens


@pytest.mark.parametrize(
    "end",
    [
        {"json": [400, {"error": {"message": "no room"}}]},
        {"fr": {"type": "stop", "matched": "NaN happened"}},
        "cut mid_body",
    ],
)
async def test_an_extension_that_fails_for_good_keeps_the_old_answer(
    simulator: SimulatorThread, tmp_path: Path, end: object
) -> None:
    stage = make_stage(tmp_path, simulator, n=3)
    await stage.work()
    before = ids(valid(stage))
    order(stage)
    simulator.script({"*": [end] * 9})
    await stage.work()

    assert ids(valid(stage)) == before
    assert stage.partition().counts.failed == 0
    assert stage.partition().counts.truncated == 2
    assert recount(stage.ledger, stage.partition_id) == []
    reasons = {row["reason"] for row in stage.rows().values() if row["state"] == "truncated"}
    assert all(str(reason).startswith("not extended: ") for reason in reasons)

    simulator.script({})
    order(stage)  # the same order once more, when the server is well again
    await stage.work()
    assert_whole(stage, simulator)
