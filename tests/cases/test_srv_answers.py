"""Cases srv-09 to srv-20, as far as they concern a worker: what an answer must bring."""

from pathlib import Path

from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import THINK_OPEN_ID
from tests.cases.settings import calls, stage_of


async def test_srv_09_chunks_are_cumulative_on_one_server_and_increments_on_another(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    stop = {"completion_tokens": 3, "finish_reason": {"type": "stop"}}
    counts = [{"completion_tokens": 1}, {"completion_tokens": 2}, stop]

    def events(*chunks: list[int]) -> list[dict[str, object]]:
        both = zip(chunks, counts, strict=True)
        return [{"sse": [{"output_ids": ids, "meta_info": meta} for ids, meta in both]}]

    cumulative, parts = events([87], [87, 88], [87, 88, 2]), events([87], [88], [2])
    simulator.script({"@@cum": cumulative, "@@inc": parts})
    stage = stage_of(tmp_path, simulator, ["c1 @@cum", "c2 @@inc"])

    await stage.work()

    assert stage.states() == {"c1": "ok", "c2": "ok"}
    assert {key: line["output_ids"] for key, line in stage.answers().items()} == {
        "c1": [87, 88, 2],
        "c2": [87, 88, 2],
    }
    stage.assert_consistent()


async def test_srv_10_no_output_ids_at_all(simulator: SimulatorThread, tmp_path: Path) -> None:
    simulator.script({"*": [{"gen": {"output_ids": None}}]})
    stage = stage_of(tmp_path, simulator, [f"n{n}" for n in range(50)])

    async with stage.shift() as shift:
        await shift.gone()

    assert simulator.stats.generate_calls <= 3
    assert "the server returned no output token ids" in shift.worker.halt_reason
    assert "no output token ids" in stage.worker_row(shift.id).exit_reason
    assert stage.partition().counts.pending == 50
    stage.assert_consistent()


async def test_srv_10_holds_on_every_later_row(simulator: SimulatorThread, tmp_path: Path) -> None:
    ids = [{"gen": {"output_ids": broken}} for broken in (None, ["a"], [1.5, 2.5, 3.5])]
    simulator.script({"@@bad": [*ids, "ok"], "*": ["ok"]})
    stage = stage_of(tmp_path, simulator, ["n0", "n1 @@bad"], max_attempts=4)

    shift = await stage.work()

    assert shift.worker.halt_reason == ""
    assert stage.states() == {"n0": "ok", "n1": "ok"}
    assert stage.rows()["n1"]["charged"] == 3
    stage.assert_consistent()


async def test_srv_13_prompt_longer_than_the_context_window(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    """The row l1 of the case never gets here: intake counts its ids and rejects it."""
    said = "prompt of 5000 tokens does not fit the context of 4096"
    simulator.script({"@@400": [{"json": [400, {"error": {"message": said}}]}], "*": ["ok"]})
    stage = stage_of(tmp_path, simulator, ["l2 short", "l3 @@400"], max_attempts=5)

    await stage.work()

    assert stage.states() == {"l2": "ok", "l3": "failed"}
    assert calls(simulator) == {"l2": 1, "l3": 1}
    assert said in stage.rows()["l3"]["reason"]
    stage.assert_consistent()


async def test_srv_14_server_truncates_the_prompt_without_a_word(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    simulator.script({"@@tr": [{"gen": {"meta_info": {"prompt_tokens": 3}}}], "*": ["ok"]})
    stage = stage_of(tmp_path, simulator, ["u1 @@tr", "u2"], max_attempts=1)

    await stage.work()

    assert stage.states() == {"u1": "failed", "u2": "ok"}
    reason = stage.rows()["u1"]["reason"]
    assert "3 tokens" in reason
    assert str(len(stage.prompts[0])) in reason
    stage.assert_consistent()


async def test_srv_18_nan_or_minus_infinity_in_log_probs(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    raw = (
        '{"text":"TU","output_ids":[87,88,2],"meta_info":{"id":"$rid","prompt_tokens":"$n",'
        '"completion_tokens":3,"finish_reason":{"type":"stop"},'
        '"output_token_logprobs":[[NaN,87,null],[-Infinity,88,null]]}}'
    )
    error = {"json": [500, {"detail": "cannot encode number"}]}
    simulator.script({"@@500": [error], "@@nan": [{"raw": raw}], "*": ["ok"]})
    stage = stage_of(tmp_path, simulator, ["y1 @@500", "y2 @@nan", "y3"], max_attempts=2)

    await stage.work()

    assert stage.states() == {"y1": "failed", "y2": "ok", "y3": "ok"}
    assert "cannot encode number" in stage.rows()["y1"]["reason"]
    stage.assert_consistent()  # parses every line with a strict parser


async def test_srv_19_one_answer_loops_on_the_same_few_tokens_up_to_the_limit(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    meta = {"completion_tokens": 400, "finish_reason": {"type": "length"}}
    loop = {"gen": {"output_ids": "[36]*400", "meta_info": meta}}
    simulator.script({"@@loop": [loop], "*": ["ok"]})
    stage = stage_of(tmp_path, simulator, ["i1 @@loop", "i2"], max_new_tokens=400)

    await stage.work()

    assert stage.states() == {"i1": "suspect", "i2": "ok"}
    line = stage.answers()["i1"]
    assert line["output_ids"] == [36] * 400
    assert "loop" in line["flags"]
    stage.assert_consistent()


async def test_srv_20_thinking_never_closed_before_the_token_limit(
    simulator: SimulatorThread, tmp_path: Path
) -> None:
    meta = {"finish_reason": {"type": "length"}}
    think = {"gen": {"output_ids": "<think> ids without </think>", "meta_info": meta}}
    simulator.script({"@@think": [think]})
    stage = stage_of(
        tmp_path, simulator, ["h1 @@think"], think_open="<think>", think_close="</think>"
    )

    await stage.work()

    assert stage.states() == {"h1": "truncated"}
    assert calls(simulator) == {"h1": 1}
    line = stage.answers()["h1"]
    assert "thinking not closed" in line["flags"]
    assert line["output_ids"][0] == THINK_OPEN_ID
    assert line["finish_reason"]["type"] == "length"
    stage.assert_consistent()
