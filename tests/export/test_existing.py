"""Answers that a dataset had already: their ids are the server's, and every turn is counted."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from app.errors import InputError, ServerAwayError
from app.export.choosing import Choice, Drop
from app.export.encoding import CallsForm, Encoder, Writing, kimi_calls
from app.export.existing import Existing, existing_rows, find_existing
from app.export.records import Example
from app.simulator.server import SimulatorThread
from app.simulator.tokenizer import (
    END_ID,
    THINK_CLOSE_ID,
    encode,
    encode_marked,
    encode_thinking_chat,
)

WRITING = Writing(end="<|end|>")
CALL = {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def said(role: str, content: str | None, **more: object) -> dict[str, object]:
    return {"role": role, "content": content, **more}


@pytest.fixture
def thinking() -> Iterator[SimulatorThread]:
    with SimulatorThread(port=0, template="toy-thinking") as running:
        yield running


def partition(folder: Path, *records: dict[str, object], writes_calls: bool = False) -> Existing:
    path = folder / "A2_thoughts" / "answers.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    (found,) = find_existing(folder, writes_calls=writes_calls)
    return found


def examples(
    existing: Existing, simulator: SimulatorThread, writing: Writing = WRITING
) -> list[Example | Drop]:
    with Encoder(simulator.url, writing) as encoder:
        return [row.found for row in existing_rows(existing, encoder, Choice(), -1)]


def test_each_answer_of_a_conversation_is_prompted_with_what_stands_before_it(
    thinking: SimulatorThread, tmp_path: Path
) -> None:
    messages = [
        said("user", "2+2?"),
        said("assistant", "4", reasoning_content="Trivial."),
        said("user", "And 3+3?"),
        said("assistant", "6"),
    ]
    existing = partition(tmp_path, {"id": "k", "messages": messages, "prompt_upto": 3})

    first, second = examples(existing, thinking)

    assert isinstance(first, Example)
    assert isinstance(second, Example)
    assert (first.key, second.key) == ("k", "k#turn2")
    assert (first.native, second.native) == ("k", "k")
    assert first.prompt == encode_thinking_chat(messages[:1], thinking=True)
    assert first.answer == [*encode("Trivial."), THINK_CLOSE_ID, *encode("4"), END_ID]
    assert first.reasoning.end == len("Trivial.")
    assert second.prompt == encode_thinking_chat(messages[:3], thinking=False)
    assert second.answer == [*encode("6"), END_ID]
    assert not second.reasoning.is_thinking
    assert (first.stop_id, first.is_regenerated) == (END_ID, False)


def test_a_prompt_that_opens_no_reasoning_has_it_opened_by_the_answer(
    thinking: SimulatorThread, tmp_path: Path
) -> None:
    """Where the template leaves it to the model, it begins its answer with the opening mark."""
    messages = [said("user", "q"), said("assistant", "a", reasoning_content="r")]
    existing = partition(tmp_path, {"id": "k", "messages": messages, "prompt_upto": 1})

    (found,) = examples(existing, thinking, Writing(end="<|end|>", opens_reasoning="<|bos|>"))

    assert isinstance(found, Example)
    assert found.answer == encode_marked("<|bos|>r</think>a<|end|>")


def test_calls_are_written_where_the_form_is_known_and_else_counted(
    thinking: SimulatorThread, tmp_path: Path
) -> None:
    messages = [
        said("user", "call"),
        said("assistant", None, tool_calls=[CALL]),
        said("tool", "3", tool_call_id="functions.f:0"),
        said("assistant", "three"),
    ]
    record = {"id": "k", "messages": messages, "tools": [{"type": "function"}], "prompt_upto": 1}
    existing = partition(tmp_path, record)

    assert [each if isinstance(each, Drop) else each.key for each in examples(existing, thinking)] \
        == [Drop.TOOL_CALLS, "k#turn2"]  # fmt: skip

    (written,) = find_existing(tmp_path, writes_calls=True)
    calls, last = examples(written, thinking, Writing(end="<|end|>", calls=CallsForm.KIMI))
    assert isinstance(calls, Example)
    assert isinstance(last, Example)
    assert calls.finish == "tool"
    assert calls.answer == [*encode(kimi_calls([CALL])), END_ID]


def test_an_end_that_is_not_one_token_is_refused(thinking: SimulatorThread) -> None:
    with pytest.raises(InputError, match='--end-text "###" is 3 tokens'):
        Encoder(thinking.url, Writing(end="###")).__enter__()


def test_a_server_that_is_away_is_told(thinking: SimulatorThread) -> None:
    thinking.stop()
    with pytest.raises(ServerAwayError, match="does not answer"):
        Encoder(thinking.url, WRITING).__enter__()


def test_a_prompt_that_the_template_refuses_is_counted(
    tmp_path: Path, thinking: SimulatorThread
) -> None:
    good = {"id": "a", "messages": [said("user", "q"), said("assistant", "x")], "prompt_upto": 1}
    odd = {"id": "b", "messages": [said("system", "s"), said("assistant", "x")], "prompt_upto": 1}
    existing = partition(tmp_path, odd, good)
    with Encoder(thinking.url, WRITING) as encoder:
        thinking.set(template="toy-strict")
        found = [row.found for row in existing_rows(existing, encoder, Choice(), -1)]

    assert found[0] is Drop.PROMPT
    assert isinstance(found[1], Example)


def test_a_line_that_is_no_record_is_told_with_file_and_line(
    tmp_path: Path, thinking: SimulatorThread
) -> None:
    existing = partition(tmp_path, {"id": "a", "messages": []}, {"id": 7})

    with pytest.raises(InputError) as raised:
        examples(existing, thinking)

    assert (
        raised.value.message == f"{existing.path}, line 2: this is no record of longwatch prepare"
    )


def test_rows_behind_a_position_are_the_same_rows(
    tmp_path: Path, thinking: SimulatorThread
) -> None:
    turns = [said("user", "q"), said("assistant", "x"), said("user", "r"), said("assistant", "y")]
    existing = partition(
        tmp_path, *({"id": f"k{n}", "messages": turns, "prompt_upto": 3} for n in range(3))
    )
    with Encoder(thinking.url, WRITING) as encoder:
        every = list(existing_rows(existing, encoder, Choice(), -1))
        behind = list(existing_rows(existing, encoder, Choice(), 2))

    assert [row.position for row in every] == list(range(6))
    assert behind == every[3:]
