"""Rows that are meant to hurt: huge, deep, and made to be looked at again and again."""

from typing import SupportsIndex

import pytest

from app.sources.contract import Mode, SkippedError, SkipReason
from app.sources.control_tokens import MAX_NAME_CHARACTERS, control_token
from app.sources.conversations import extracted
from app.sources.known import by_name
from app.sources.thinking import split_thinking

MEGABYTE = 2**20
CHAT = by_name("chat_messages")
GLAIVE = by_name("glaive_function_calling")


class Counted(str):
    """A text that counts how many of its characters were looked at by `find`."""

    n_looked_at = 0

    def find(
        self, sub: str, start: SupportsIndex | None = None, end: SupportsIndex | None = None, /
    ) -> int:
        found = super().find(sub, start, end)
        until = found + len(sub) if found >= 0 else len(self) if end is None else end.__index__()
        begin = 0 if start is None else start.__index__()
        self.n_looked_at += min(until, len(self)) - begin
        return found


@pytest.mark.parametrize("pattern", ["<|", "<|a", "<|>", "<| |>", "<|" + "a" * 70, "|><|"])
def test_every_character_is_looked_at_a_bounded_number_of_times(pattern: str) -> None:
    text = Counted(pattern * (MEGABYTE // 16 // len(pattern)) + "|>")

    control_token(text)

    # Each "<|" makes one look behind it, as far as a name and its end can reach.
    assert 0 < text.n_looked_at <= (MAX_NAME_CHARACTERS + 4) * len(text)


@pytest.mark.parametrize("pattern", ["<think>", "<think></think>", "<think>a</think>\n"])
def test_opened_reasoning_is_looked_at_once(pattern: str) -> None:
    text = Counted(pattern * (MEGABYTE // len(pattern)))

    assert split_thinking(text)[1] == ""
    assert 0 < text.n_looked_at <= len(text)


def test_a_hostile_megabyte_of_glaives_text_is_one_turn() -> None:
    said = "\n\n\n<|x USER: <functioncall> {'" * (MEGABYTE // 32)

    found = extracted(GLAIVE, {"system": said, "chat": f"USER: {said}"}, Mode.LAST_USER)

    assert [turn["content"] for turn in found.messages] == [said.strip()] * 2


@pytest.mark.parametrize("name", ["opencodeinstruct", "chat_messages", "glaive_function_calling"])
def test_a_text_of_twenty_megabytes_is_asked_as_it_is(name: str) -> None:
    text = "é<x>" * (5 * MEGABYTE)
    messages = [{"role": "user", "content": text}]
    row = {"input": text, "messages": messages, "chat": f"USER: {text}"}

    assert extracted(by_name(name), row, Mode.LAST_USER).messages == messages


@pytest.mark.parametrize(
    "row",
    [
        {"messages": "[" * MEGABYTE},
        {"messages": [{"role": "user", "content": "Hi"}], "tools": "[" * MEGABYTE},
        {"messages": [{"role": "user", "content": "Hi"}], "tools": '{"a":' * MEGABYTE},
        {"messages": [{"role": "user", "content": "Hi"}], "tools": [{"name": "f", "a": ...}]},
    ],
)
def test_nesting_without_end_is_bad_schema(row: dict[str, object]) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    if isinstance(row.get("tools"), list):
        row = row | {"tools": [{"name": "f", "parameters": deep}]}

    with pytest.raises(SkippedError) as raised:
        extracted(CHAT, row, Mode.LAST_USER)

    assert raised.value.reason is SkipReason.BAD_SCHEMA


def test_functions_nested_without_end_stay_the_system_text() -> None:
    row = {"system": 'SYSTEM: use {"a":' + '{"a":' * 100_000, "chat": "USER: Hi"}

    found = extracted(GLAIVE, row, Mode.LAST_USER)

    assert found.tools is None
    assert [said["role"] for said in found.messages] == ["system", "user"]


def test_a_hundred_thousand_neighbours_become_one_turn() -> None:
    said = [{"role": "user", "content": "Hi"}] * 100_000

    found = extracted(CHAT, {"messages": said}, Mode.LAST_USER)

    assert found.messages == [{"role": "user", "content": "\n\n".join(["Hi"] * 100_000)}]
