"""Invented prompts for the demo: eight partitions, every word our own, the same at every call."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

import orjson

_THINGS = (
    "a lighthouse", "a bicycle bell", "the tides", "a bakery at dawn", "an old radio", "gutters",
    "a chess club", "a ferry", "the night bus", "a greenhouse", "a paper map", "snow tyres",
    "a pocket watch", "a beehive", "a suspension bridge", "a library card", "sourdough", "a kite",
    "a tram driver", "an orchard", "a weather balloon", "a choir", "a canal lock", "a workbench",
)  # fmt: skip
_FOR = (
    "for a child of nine", "for somebody who just moved house", "for a careful engineer",
    "in under two hundred words", "with one worked example", "as a list of five steps",
    "without any jargon", "for a reader in a hurry", "with the usual mistakes named",
    "and say what you are unsure of", "as if it were new", "in a friendly tone",
)  # fmt: skip
# name, how each prompt begins, and the mean length that the simulator is asked for
PARTITIONS = (
    ("B1_chat", "Tell me something worth knowing about", 1_500),
    ("B2_code", "Write a small, tested function that models", 3_793),
    ("B3_facts", "Answer in plain facts: what matters about", 1_500),
    ("B4_maths", "Make up and solve a numerical problem about", 6_000),
    ("B5_stories", "Begin a story that turns on", 6_000),
    ("B6_dialogue", "Write a short talk between two people about", 1_500),
    ("B7_letters", "Draft a polite letter that mentions", 1_500),
    ("B8_plans", "Plan, step by step, a weekend project around", 8_000),
)


def write_prompts(folder: Path, n_each: int) -> None:
    """Write `<folder>/<partition>/prompts.jsonl` for all eight; files that are there stay."""
    for number, (name, beginning, mean_tokens) in enumerate(PARTITIONS):
        path = folder / name / "prompts.jsonl"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = _rows(name, beginning, mean_tokens, Random(number))  # noqa: S311 - order of a demo
        fresh = path.with_suffix(".part")
        with fresh.open("wb") as file:
            for _, row in zip(range(n_each), rows, strict=False):
                file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        fresh.replace(path)


def _rows(
    name: str, beginning: str, mean_tokens: int, random: Random
) -> Iterator[dict[str, object]]:
    pairs = list(product(_THINGS, _FOR))
    random.shuffle(pairs)
    n = 0
    while True:
        for thing, manner in pairs:
            n += 1
            again = f" (take {1 + n // len(pairs)})" if n > len(pairs) else ""
            text = f"{beginning} {thing}, {manner}{again}. @@mean={mean_tokens}"
            yield {"id": f"{name}-{n:05d}", "messages": [{"role": "user", "content": text}]}
