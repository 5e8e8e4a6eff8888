"""Rows as no dataset should have them: any value in any column, near enough to the real shapes.

Made by a seeded `Random`, not by strategies: a hundred rows take as long as one of those would.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from random import Random

import orjson

PIECES = [
    "", "", " ", "\n\n\n", "\n", "Hi", "Hi", "é🌊", "[PAD]", "<|im_end|>", "<|", "|>", "<think>",
    "</think>", "<|im_system|>tool_declare<|im_middle|>", "<think>\n7*13\n</think>\n\nNo.",
    "USER:", "\n\n\nUSER: ", "\n\n\nASSISTANT: ", "SYSTEM:", "\n\n\nFUNCTION RESPONSE: ",
    "<functioncall>", '{"name": "f", "arguments": \'{"a": "it\'s"}\'}', '{"name": "f"}',
    "<|endoftext|>", "{", "}", "[", "'", '"', "\\", "\u0000", "null",
]  # fmt: skip
RARE = [
    "\ud800", b"\xff", Decimal("1.5"), datetime(2026, 1, 1, tzinfo=UTC), 10**400, float("nan"),
    (1,), {1: 2}, object(), {"a": "\udfff"},
]  # fmt: skip
CHATS = ("messages", "conversations", "trajectory")
ROLES = [
    "user",
    "user",
    "human",
    "assistant",
    "assistant",
    "gpt",
    "ai",
    "system",
    "tool",
    "function",
]


class AnyRow(Mapping[str, object]):
    """A row with a value for whatever column is asked for, the same each time."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._columns = dict[str, object]()

    def __getitem__(self, name: str) -> object:
        if name not in self._columns:
            self._columns[name] = any_column(self._random, name)
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return repr(self._columns)


def any_column(random: Random, name: str) -> object:
    kind = random.random()
    if kind < 0.05:
        return random.choice([None, any_value(random)])
    if kind < 0.15:
        name = random.choice(["messages", "tools", "id"])
    if name in ("tools", "available_tools"):
        tools = [any_call(random) for _ in range(random.randrange(3))]
        return random.choice([None, tools, as_json(tools)])
    if name not in CHATS:
        return any_text(random)
    make = any_turn if random.random() < 0.5 else good_turn
    chat = [make(random) for _ in range(random.randrange(9))]
    return as_json(chat) if random.random() < 0.3 else chat


def any_text(random: Random) -> str:
    start = random.choice(["", "", "USER: Hi"])
    return start + "".join(random.choices(PIECES, k=random.randrange(5)))


def any_value(random: Random, depth: int = 0) -> object:
    kind = random.randrange(8 if depth < 4 else 4)
    if kind == 0:
        return random.choice([None, True, 7, -1.5, "", *RARE])
    if kind < 4:
        return any_text(random)
    if kind < 6:
        return [any_value(random, depth + 1) for _ in range(random.randrange(3))]
    return {any_text(random): any_value(random, depth + 1) for _ in range(random.randrange(3))}


def good_turn(random: Random) -> dict[str, object]:
    names = random.choice([("role", "content"), ("from", "value"), ("role", "text")])
    text = random.choice(["Hi", "", "é", any_text(random)])
    return dict(zip(names, [random.choice(ROLES), text], strict=True))


def any_turn(random: Random) -> object:
    if random.random() < 0.02:
        return any_value(random)
    turn = good_turn(random)
    for name in ("content", "text", "system_prompt", "thinking", "reasoning_content", "role"):
        if random.random() < 0.03:
            turn[name] = any_value(random)
    if random.random() < 0.1:
        turn["content"] = [{"type": "text", "text": any_text(random)}, any_text(random)]
    if random.random() < 0.2:
        name = random.choice(["tool_calls", "function_call"])
        turn[name] = random.choice([[any_call(random)], any_call(random)])
    if random.random() < 0.2:
        turn["tool_call_id"] = random.choice(["a", any_value(random)])
    if random.random() < 0.1:
        turn["tool_call_ids"] = random.choice([["a"], any_value(random)])
    return turn


def any_call(random: Random) -> object:
    arguments = ["{}", '{"a": 1}', '{"a": NaN}', {"a": 1}, any_value(random)]
    call: dict[str, object] = {
        "name": random.choice(["f"] * 9 + ["f<|x|>", any_value(random)]),
        "arguments": random.choice([*arguments, "", "{}", "{}", "{}"]),
    }
    if random.random() < 0.3:
        call["parameters"] = any_value(random)
    if random.random() < 0.5:
        call = {"type": "function", "function": call}
    if random.random() < 0.5:
        call["id"] = random.choice(["a", any_value(random)])
    return call if random.random() < 0.95 else any_value(random)


def as_json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return "{broken"
