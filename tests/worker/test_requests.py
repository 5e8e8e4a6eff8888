"""What a worker sends and how it reads it: sampling, trial, both streaming modes, text."""

from pathlib import Path

import pytest

from app.events import Claimed, Ticked
from app.simulator.answers import answer
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import END_ID, decode
from tests.stage import Stage, random_texts
from tests.worker.oracle import assert_true_answers


async def test_sampling_and_stream_interval_reach_the_server(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"*": ["ok"]})
    sampling = {"temperature": 0.7, "top_p": 0.9, "stop_token_ids": [5], "sampling_seed": 11}
    changes: dict[str, object] = {"sampling": sampling, "stream_interval": 128}
    stage = Stage(tmp_path, simulator.url, max_new_tokens=321, plan_changes=changes)
    stage.fill(random_texts(5, seed=1))

    await stage.work()

    log = simulator.stats.requests()
    assert len(log) == 5
    for entry in log:
        assert entry.stream
        assert entry.sampling_params == {
            **sampling,
            "max_new_tokens": 321,
            "stream_interval": 128,
        }


@pytest.mark.parametrize("interval", [1, 7, 64, 1_000])
@pytest.mark.parametrize("incremental", [False, True], ids=["cumulative", "incremental"])
async def test_every_streaming_mode_brings_the_same_answers(
    tmp_path: Path, incremental: bool, interval: int
) -> None:
    with SimulatorThread(port=0, incremental=incremental, time_factor=100) as simulator:
        changes: dict[str, object] = {"stream_interval": interval}
        stage = Stage(tmp_path, simulator.url, max_new_tokens=700, plan_changes=changes)
        stage.fill(random_texts(10, seed=4, mark="@@mean=500"))

        await stage.work()

        assert_true_answers(stage, simulator)
        for line in stage.lines():
            assert line["text"] == decode([i for i in line["output_ids"] if i != END_ID])
        stage.assert_consistent()


async def test_a_trial_sends_one_request_and_the_rest_when_its_first_ids_have_come(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    changes: dict[str, object] = {"trial_patience_s": 60.0}
    stage = Stage(tmp_path, simulator.url, concurrency=8, plan_changes=changes)
    stage.fill(random_texts(20, seed=1, mark="@@len=16000"))
    simulator.freeze()

    async with stage.shift() as shift:
        await shift.until(lambda: simulator.stats.in_flight == 1, "the trial")
        await shift.until(lambda: len(shift.heard(Ticked)) >= 8, "some ticks")
        assert simulator.stats.generate_calls == 1
        simulator.unfreeze()
        await shift.until(lambda: simulator.stats.in_flight == 8, "the rest")

    stage.assert_consistent()


async def test_a_silent_trial_does_not_hold_back_the_rest_for_ever(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"@@hang": ["hang"], "*": ["ok"]})
    stage = Stage(tmp_path, simulator.url, concurrency=8)
    texts = random_texts(10, seed=1)
    stage.fill(["first @@hang", "second @@hang", *texts])

    async with stage.shift() as shift:
        await shift.until(lambda: stage.partition().counts.ok == 10, "the others")
        claimed = [event.n for event in shift.heard(Claimed) if isinstance(event, Claimed)]
        assert claimed[:2] == [1, 7]
        assert set(simulator.stats.calls.values()) == {1}

    counts = stage.partition().counts
    assert (counts.ok, counts.pending) == (10, 2)
    stage.assert_consistent()


async def test_a_trial_that_breaks_after_its_first_ids_does_not_halt(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.set(instant=True, incremental=True)
    simulator.script({"@@gap": [{"gap_after": 150}, {"model": True}], "*": [{"model": True}]})
    stage = Stage(tmp_path, simulator.url, plan_changes={"backoff_first_s": 0.05})
    stage.fill(["first @@len=400 @@gap", "second @@len=100"])

    shift = await stage.work()

    assert shift.worker.halt_reason == ""
    assert stage.rows()["row0"]["charged"] == 1
    assert_true_answers(stage, simulator)
    assert len(stage.answers()["row0"]["segments"]) == 1  # nothing is continued after a gap
    stage.assert_consistent()


async def paused_half_way(stage: Stage, tokens: int) -> None:
    await stage.work(lambda view: view.tokens.held >= tokens)
    assert stage.partition().counts.pending > 0


async def test_text_of_a_continued_answer_comes_from_detokenize(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.set(time_factor=20)
    stage = Stage(tmp_path, simulator.url, max_new_tokens=900)
    stage.fill(random_texts(4, seed=5, mark="@@len=800"))
    await paused_half_way(stage, 800)
    assert "/detokenize" not in simulator.stats.http_requests

    await stage.work()

    assert_true_answers(stage, simulator)
    assert simulator.stats.http_requests["/detokenize"] == 4
    for line in stage.lines():
        assert len(line["segments"]) == 2
        assert line["text"] == decode(line["output_ids"])
    stage.assert_consistent()


async def test_text_of_a_continued_answer_ends_before_its_stop_string_as_in_one_piece(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.set(time_factor=20)
    texts = random_texts(4, seed=5, mark="@@len=800")
    for folder in ("whole", "parts"):
        (tmp_path / folder).mkdir()
    whole = Stage(tmp_path / "whole", simulator.url, max_new_tokens=900)
    whole.fill(texts)
    lengths = simulator.settings.lengths
    stops = [decode(answer(prompt, lengths, 900)[600:603]) for prompt in whole.prompts.values()]
    whole.plan_changes["sampling"] = {"stop": stops}
    await whole.work()
    stage = Stage(tmp_path / "parts", simulator.url, max_new_tokens=900)
    stage.plan_changes["sampling"] = {"stop": stops}
    stage.fill(texts)
    await paused_half_way(stage, 400)

    await stage.work()

    expected, found = whole.answers(), stage.answers()
    assert any(len(line["segments"]) > 1 for line in found.values())
    for key, line in expected.items():
        assert found[key]["output_ids"] == line["output_ids"]
        assert found[key]["text"] == line["text"]
        assert not line["text"].endswith(tuple(stops))


async def test_an_answer_is_kept_without_text_if_the_server_cannot_tell_it(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.set(time_factor=20)
    simulator.script(None, endpoints={"/detokenize": [500, "out of order"]})
    stage = Stage(tmp_path, simulator.url, max_new_tokens=900)
    stage.fill(random_texts(4, seed=6, mark="@@len=800"))
    await paused_half_way(stage, 800)

    await stage.work()

    assert_true_answers(stage, simulator)
    assert {line["text"] for line in stage.lines()} == {None}
    stage.assert_consistent()


async def test_a_continuation_asks_for_what_is_missing(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.set(time_factor=20)
    sampling = {"temperature": 0.0, "min_new_tokens": 500}
    stage = Stage(tmp_path, simulator.url, max_new_tokens=900, plan_changes={"sampling": sampling})
    stage.fill(random_texts(2, seed=7, mark="@@len=800"))
    await paused_half_way(stage, 400)
    held = {row["id"]: row["held_tokens"] for row in stage.rows().values()}
    before = len(simulator.stats.requests())

    await stage.work()

    continued = simulator.stats.requests()[before:]
    assert len(continued) == 2
    for entry in continued:
        sample = int(entry.rid.split("-")[2])
        prompt = len(stage.prompts[sample - min(held)])
        assert entry.n_input_ids == prompt + held[sample]
        assert entry.max_new_tokens == 900 - held[sample]
        assert entry.sampling_params["min_new_tokens"] == max(0, 500 - held[sample])
    assert_true_answers(stage, simulator)
    stage.assert_consistent()
