"""Where an answer's line says that the reasoning ended: the mark's place among its ids."""

from pathlib import Path

import orjson
import pytest

from app.files.records import encode as encode_record
from app.files.records import parse
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import THINK_CLOSE_ID, THINK_OPEN_ID, encode
from tests.files.records_of import answer
from tests.stage import Stage

MARKS: dict[str, object] = {"think_open": THINK_OPEN_ID, "think_close": THINK_CLOSE_ID}
OPENED, PLAIN = [1, THINK_OPEN_ID], [1, 36]


@pytest.mark.parametrize(
    ("prompt", "output_ids", "marks", "reasoning_end"),
    [
        (OPENED, [40, 41, THINK_CLOSE_ID, 42], MARKS, 2),
        (OPENED, [40, 41, 42], MARKS, None),
        (PLAIN, [THINK_OPEN_ID, 40, THINK_CLOSE_ID, 42], MARKS, 2),
        (PLAIN, [40, 41, THINK_CLOSE_ID, 42], MARKS, None),
        (PLAIN, encode("x</think>y"), MARKS, None),
        (OPENED, encode("x</think>y"), MARKS, None),
        (OPENED, [40, 41, THINK_CLOSE_ID, 42], {}, None),
    ],
    ids=[
        "opened_by_prompt",
        "never_closed",
        "opened_by_answer",
        "mark_without_thinking",
        "words_of_a_mark",
        "words_of_a_mark_while_thinking",
        "marks_unknown",
    ],
)
async def test_the_line_says_where_the_reasoning_ended(
    simulator: SimulatorThread,
    tmp_path: Path,
    prompt: list[int],
    output_ids: list[int],
    marks: dict[str, object],
    reasoning_end: int | None,
) -> None:
    meta = {"finish_reason": {"type": "stop"}}
    simulator.script({"*": [{"gen": {"output_ids": output_ids, "meta_info": meta}}]})
    stage = Stage(tmp_path, simulator.url, plan_changes=marks)
    stage.fill_with(["t"], [prompt], ["k"])

    await stage.work()

    (line,) = stage.lines()
    assert line["output_ids"][: len(output_ids)] == output_ids
    assert line["reasoning_end"] == reasoning_end
    is_open = marks == MARKS and prompt == OPENED and reasoning_end is None
    assert ("thinking not closed" in line["flags"]) == is_open
    assert list(line).index("reasoning_end") == list(line).index("flags") + 1
    stage.assert_consistent()


def test_a_line_of_an_earlier_version_is_read_like_any() -> None:
    line = encode_record(answer(1, reasoning_end=1))
    fields = orjson.loads(line)
    assert fields.pop("reasoning_end") == 1
    assert parse(orjson.dumps(fields)) == parse(line)
    assert parse(line) is not None
