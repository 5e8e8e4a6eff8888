"""The rows of the fixtures, and what they give, written as the expected files are."""

import json
from collections.abc import Iterable
from pathlib import Path

import orjson

from app.sources.contract import Gives, Mode, Recipe, Row, SkippedError, SkipReason
from app.sources.conversations import Extracted, extracted

FIXTURES = Path(__file__).parent / "fixtures"
RECIPES = {
    "a1_kimi_k2_trajectories": "toucan",
    "a2_kimik25_2000x": "datagen_thinking",
    "a2alt_kimi_reasoning_traces": "kimi_reasoning_traces",
    "b1_glaive": "glaive_function_calling",
    "b1alt_glaive_code_assistant": "glaive_code_assistant",
    "b2_opencodeinstruct": "opencodeinstruct",
    "b3_magicoder": "magicoder_oss",
    "b3alt_magicoder_evol": "magicoder_evol",
    "b4_mixturethoughts": "mixture_of_thoughts",
    "b5_openthoughts": "openthoughts",
    "b6_ultrachat": "ultrachat",
    "b7_sharegpt": "sharegpt",
    "b8_sweagent": "swe_agent_trajectories",
    "b8alt_swesmith": "swe_smith",
}


def rows_of(fixture: str) -> list[dict[str, object]]:
    return [
        orjson.loads(line) for line in (FIXTURES / f"{fixture}.jsonl").read_bytes().splitlines()
    ]


def expected(fixture: str) -> bytes:
    return (FIXTURES / f"{fixture}.expected.jsonl").read_bytes()


def written(recipe: Recipe, rows: Iterable[Row]) -> bytes:
    """Return a line for each row; the first of two that ask the same, or of one id, is kept."""
    lines, first_rows = [], dict[bytes, int]()
    for number, row in enumerate(rows):
        line: dict[str, object] = {"row": number}
        try:
            found = extracted(recipe, row, recipe.mode)
        except SkippedError as skipped:
            line["skip"] = skipped.reason
        else:
            of = first_rows.setdefault(_sameness(recipe, found), number)
            if of == number:
                line |= _kept(recipe, found)
            else:
                line |= {"skip": SkipReason.DUPLICATE, "of": of}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def asked(name: Recipe, row: Row, mode: Mode = Mode.LAST_USER) -> list[dict[str, object]]:
    return extracted(name, row, mode).messages


def _sameness(recipe: Recipe, found: Extracted) -> bytes:
    if recipe.is_one_per_id and found.native_id is not None:
        return orjson.dumps(found.native_id)
    return orjson.dumps([found.messages, found.tools])


def _kept(recipe: Recipe, found: Extracted) -> dict[str, object]:
    line: dict[str, object] = {
        "native_id": found.native_id, "messages": found.messages, "tools": found.tools
    }  # fmt: skip
    if recipe.gives is Gives.ANSWERS:
        line |= {"prompt_upto": found.prompt_upto, "supervise": "all_assistant_turns"}
    else:
        line["mode"] = recipe.mode
    return line | {"flags": found.flags} if found.flags else line
