"""Every fixture gives its expected extraction, byte for byte."""

import pytest
from pyarrow import parquet

from app.sources.known import all_recipes, by_name, recognised
from tests.sources.fixture_rows import FIXTURES, RECIPES, expected, rows_of, written


@pytest.mark.parametrize("fixture", RECIPES)
def test_a_fixture_gives_its_expected_extraction(fixture: str) -> None:
    recipe = by_name(RECIPES[fixture])

    assert written(recipe, rows_of(fixture)).decode() == expected(fixture).decode()


def test_parquet_with_the_types_of_the_hub_gives_the_same() -> None:
    rows = parquet.read_table(FIXTURES / "b4_mixturethoughts.parquet").to_pylist()

    assert written(by_name("mixture_of_thoughts"), rows) == expected("b4_mixturethoughts")


@pytest.mark.parametrize("fixture", RECIPES)
def test_a_fixture_is_recognised_by_its_first_row(fixture: str) -> None:
    row = rows_of(fixture)[0]

    assert recognised(row, row).name == RECIPES[fixture]


def test_no_fixture_and_no_recipe_was_forgotten() -> None:
    files = {path.name.removesuffix(".expected.jsonl") for path in FIXTURES.glob("*.expected.*")}

    assert files == RECIPES.keys()
    assert all_recipes().keys() - RECIPES.values() == {"chat_messages"}
