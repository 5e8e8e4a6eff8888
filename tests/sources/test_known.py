"""Recipes are found by their files and recognised by columns; tables need none."""

import pickle
from importlib import import_module
from pathlib import Path

import pytest

from app.errors import InputError
from app.sources.columns import by_columns
from app.sources.contract import Gives, Mode, Row
from app.sources.conversations import Extracted, extracted
from app.sources.known import all_recipes, by_name, recipes_in, recognised

RECIPE_FILE = """
from app.sources.contract import Recipe
from app.sources.turns import single
def read(row):
    return single(row, "riddle")
RECIPE = Recipe(name="{name}", about="riddles", columns=frozenset({{"riddle"}}), read=read)
"""
TURNS = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]


@pytest.mark.parametrize("recipe", all_recipes().values(), ids=lambda recipe: recipe.name)
def test_a_recipe_is_named_as_its_file_and_can_go_to_another_process(recipe: object) -> None:
    same = pickle.loads(pickle.dumps(recipe))  # noqa: S301 - our own, a moment old

    assert same == recipe
    assert import_module(f"app.sources.recipes.{same.name}").RECIPE is recipe


def test_a_new_file_is_all_that_a_recipe_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "riddle_recipes"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "riddles.py").write_text(RECIPE_FILE.format(name="riddles"))
    package = import_module("riddle_recipes")

    found = recipes_in(package)["riddles"]

    assert asked(extracted(found, {"riddle": "Why?"}, Mode.LAST_USER)) == ["Why?"]

    (folder / "twins.py").write_text(RECIPE_FILE.format(name="riddles"))
    with pytest.raises(InputError, match=r'two recipes are named "riddles", one .*twins'):
        recipes_in(package)
    (folder / "empty.py").touch()
    with pytest.raises(InputError, match=r"riddle_recipes.empty has no RECIPE"):
        recipes_in(package)


def asked(found: Extracted) -> list[object]:
    return [said["content"] for said in found.messages]


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(InputError) as raised:
        by_name("glaive_function_call")

    assert str(raised.value) == (
        'no recipe is named "glaive_function_call". Did you mean glaive_function_calling?'
    )


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"messages": TURNS}, "chat_messages"),
        ({"messages": [*TURNS[:1], {**TURNS[1], "thinking": "hm"}]}, "datagen_thinking"),
        ({"messages": [*TURNS[:1], {**TURNS[1], "content": "<think>a</think>b"}]},
         "datagen_thinking"),
        ({"system": "Be terse.", "conversations": TURNS}, "sharegpt"),
        ({"system": "use <|begin_of_thought|>", "conversations": TURNS}, "openthoughts"),
        ({"conversations": TURNS}, "sharegpt"),
        ({"question": "Why?", "answer": "So.", "more": 1}, "glaive_code_assistant"),
    ],
)  # fmt: skip
def test_of_several_that_fit_the_closest_is_taken(row: Row, name: str) -> None:
    assert recognised(row, row).name == name


def test_answers_are_never_taken_for_granted() -> None:
    assert recognised({"messages"}).gives is Gives.PROMPTS


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"problem", "solution"}, "magicoder_oss needs index, lang, raw_index too; name one"),
        ({"problem", "thinking"}, "kimi_reasoning_traces needs response too"),
        ({"riddle"}, "no recipe fits the columns riddle. Name one (recipe = \"…\") or say which"),
        (set(), "no recipe fits the columns (none)"),
        ({"question", "answer", "instruction", "response"},
         "glaive_code_assistant and magicoder_evol fit the columns answer, instruction, question"),
    ],
)  # fmt: skip
def test_an_unknown_source_is_told_what_would_fit(columns: set[str], said: str) -> None:
    with pytest.raises(InputError) as raised:
        recognised(columns)

    assert said.lower() in str(raised.value).lower()


def test_columns_by_name_need_no_code() -> None:
    recipe = by_columns({
        "prompt": "q", "system": "sys", "messages": "chat", "tools": "fns", "id": "key"
    })  # fmt: skip
    tools = '[{"name": "f"}]'

    chat = {"chat": TURNS, "sys": "S", "fns": tools, "key": 7, "q": "unused"}
    found = extracted(pickle.loads(pickle.dumps(recipe)), chat, Mode.LAST_USER)  # noqa: S301 - ours

    assert asked(found) == ["S", "Hi"]
    assert found.tools == [{"type": "function", "function": {"name": "f"}}]
    assert found.native_id == "7"
    assert asked(extracted(recipe, {"q": "Why?", "chat": []}, Mode.LAST_USER)) == ["Why?"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [(7, "7"), ("a\tb", "a\tb"), ("x" * 501, None), ("\ud800", None), (" ", None), (10**400, None),
     (True, None), (1.5, None), (["a"], None)],
)  # fmt: skip
def test_an_id_that_no_prompt_could_have_is_none(given: object, expected: str | None) -> None:
    row = {"messages": TURNS, "id": given}

    assert extracted(by_name("chat_messages"), row, Mode.LAST_USER).native_id == expected


def test_columns_with_an_answer_give_answers() -> None:
    recipe = by_columns({"prompt": "q", "answer": "a"})

    found = extracted(recipe, {"q": "Why?", "a": "<think>hm</think>So."}, Mode.LAST_USER)

    assert recipe.gives is Gives.ANSWERS
    assert found.prompt_upto == 1
    assert found.messages[1] == {
        "role": "assistant", "content": "So.", "reasoning_content": "hm"
    }  # fmt: skip


def test_wrong_columns_are_told_all_at_once() -> None:
    with pytest.raises(InputError) as raised:
        by_columns({"promt": "q", "id": ""})

    assert str(raised.value) == (
        'columns.promt is not known; did you mean prompt?; columns.id "" is no name of a column; '
        "name the column of prompt or of messages. "
        'Write columns = { prompt = "question" }, for example'
    )
