"""Whatever stands in a row, a recipe gives a conversation that can be run, or a reason."""

import json
import re
from random import Random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.files.prompt_records import Prompt, parse_record
from app.sources.columns import MEANINGS, by_columns
from app.sources.contract import Gives, Mode, Recipe, Row, SkippedError
from app.sources.conversations import Extracted, extracted
from app.sources.known import all_recipes
from tests.sources.any_rows import AnyRow

EVERY = [
    *all_recipes().values(),
    by_columns({name: name for name in MEANINGS if name != "answer"}),
    by_columns({name: name for name in MEANINGS}),
]
# Said once more and otherwise than the code does: a name without blanks, marks and quotes.
CONTROL_TOKEN = re.compile(r"<\|[^\s<>|\"\\'`]{1,64}\|>")


@pytest.mark.parametrize("recipe", EVERY, ids=lambda recipe: f"{recipe.name}-{recipe.gives}")
@given(seed=st.integers(0, 2**64))
@settings(max_examples=20, deadline=None)
def test_any_row_gives_a_conversation_or_a_reason(recipe: Recipe, seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        row = AnyRow(random)
        mode, may_keep = random.choice(list(Mode)), random.random() < 0.5

        found = given_or_skipped(recipe, row, mode, may_keep)

        if isinstance(found, SkippedError):
            assert orjson.dumps([found.reason, found.detail, str(found)])
        else:
            assert_is_usable(recipe, found, mode)
            assert may_keep or holds_no_control_token(found)


def given_or_skipped(
    recipe: Recipe, row: Row, mode: Mode, may_keep: bool
) -> Extracted | SkippedError:
    try:
        return extracted(recipe, row, mode, keep_control_tokens=may_keep)
    except SkippedError as skipped:
        return skipped


def assert_is_usable(recipe: Recipe, found: Extracted, mode: Mode) -> None:
    if recipe.gives is Gives.PROMPTS:
        assert_can_be_taken_in(found, mode)
        return
    assert orjson.dumps([found.messages, found.tools])
    assert found.prompt_upto is not None
    assert found.messages[found.prompt_upto - 1]["role"] == "user"
    assert "assistant" in {said["role"] for said in found.messages[found.prompt_upto :]}


def holds_no_control_token(found: Extracted) -> bool:
    sent = json.dumps([found.messages, found.tools], ensure_ascii=False, default=str)
    return CONTROL_TOKEN.search(sent) is None


def assert_can_be_taken_in(found: Extracted, mode: Mode) -> None:
    record = {"id": found.native_id, "messages": found.messages, "tools": found.tools}
    taken = parse_record(orjson.loads(orjson.dumps(record)), 0, 1)

    assert isinstance(taken, Prompt), taken
    assert found.messages[-1]["role"] == "user"
    assert taken.messages == orjson.loads(orjson.dumps(found.messages))
    if found.native_id is not None:
        assert taken.key == found.native_id
    roles = [said["role"] for said in found.messages]
    if mode is Mode.FIRST_USER:
        assert roles.count("user") == 1
    if mode is Mode.ALL_TURNS:
        assert set(roles[1:]) <= {"user"}
