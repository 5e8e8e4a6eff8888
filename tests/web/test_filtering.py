"""Which rows are shown and in what order: from the query of the address to the sheet."""

from dataclasses import replace

import pytest

from app.core.conditions import Condition, ConditionKind
from app.figures import RunFigures
from app.web.charted import Charted
from app.web.filtering import Listing, View, group_of, order_of, view_of
from app.web.gallery.invented import CHART, FINISHED, NOW, PARTITION, PAUSED, RUN, numbered
from app.web.overview import overview
from app.web.sheet import Sheet

ROWS = numbered(
    replace(PARTITION, speed_tokens_per_s=10.0, percent=5),
    replace(PAUSED, percent=90),
    FINISHED,
    replace(PARTITION, speed_tokens_per_s=99.0, percent=50),
)
NAMES = [each.name for each in ROWS]
FAILING = Condition(
    kind=ConditionKind.FAILING, since=NOW, sentence="It fails.", partition=NAMES[3], ratio=0.3
)
FOUR: RunFigures = replace(RUN, partitions=ROWS, conditions=(FAILING,))


def shown(**view: str) -> Sheet:
    return overview(FOUR, Charted(chart=CHART), "1h", [], listing=Listing(view=View(**view)))


def hidden(sheet: Sheet) -> list[str]:
    return [name for name, pairs in sheet.attrs.items() if "hidden" in pairs and name[0] == "p"]


@pytest.mark.parametrize(
    ("sort", "places"),
    [
        ("name", [0, 1, 2, 3]),
        ("attention", [3, 0, 1, 2]),
        ("speed", [3, 0, 1, 2]),
        ("progress", [2, 1, 3, 0]),
    ],
)
def test_orders_put_what_is_not_known_last_and_equals_by_name(sort: str, places: list[int]) -> None:
    assert order_of(FOUR, sort) == tuple(ROWS[place].id for place in places)


@pytest.mark.parametrize(
    ("state", "places"),
    [("all", [0, 1, 2, 3]), ("attention", [3]), ("running", [0]), ("paused", [1]), ("over", [2])],
)
def test_a_state_hides_all_others_and_every_row_stays_in_the_markup(
    state: str, places: list[int]
) -> None:
    sheet = shown(state=state)
    assert hidden(sheet) == [f"p{each.id}" for n, each in enumerate(ROWS) if n not in places]
    (rows,) = [block for block in sheet.root.children if block.id == "rows"]
    assert len(rows.children) == len(ROWS)
    assert "hidden" in sheet.attrs["no-rows"]


def test_a_part_of_a_name_in_either_case_and_what_matches_nothing() -> None:
    sheet = shown(q=NAMES[1].upper())
    assert f"p{ROWS[1].id}" not in hidden(sheet)
    assert hidden(shown(q="%_no")) == [f"p{each.id}" for each in ROWS]
    assert "hidden" not in shown(q="%_no").attrs["no-rows"]


def test_words_that_are_none_count_as_not_given_and_a_long_one_is_cut() -> None:
    asked = view_of({"state": "<b>", "sort": "size", "q": "x" * 500, "more": "1"})
    assert asked == View(q="x" * 80)
    assert group_of("a look of later") == "running"


def test_an_order_that_was_placed_before_is_kept_and_new_rows_come_last() -> None:
    placed = tuple(each.id for each in (ROWS[2], ROWS[0]))
    sheet = overview(FOUR, Charted(chart=CHART), "1h", [], listing=Listing(order=placed))
    (rows,) = [block for block in sheet.root.children if block.id == "rows"]
    ids = [block.id for block in rows.children]
    assert ids == [f"p{ROWS[place].id}" for place in (2, 0, 1, 3)]
