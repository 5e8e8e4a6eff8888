"""The page's deadline forms, and what the page says of where the work will end."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from app.core.landing import EndsBy, Landing
from app.ledger import runs
from app.web.gallery.invented import BUDGETED, NOW, RUN
from tests.api.conftest import Door
from tests.api.home import Home
from tests.web import test_actions as forms
from tests.web.test_overview import Elements, drawn, sheet_of


@pytest.fixture
async def browser(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    async with forms.somebody(home, door) as client:
        yield client


async def test_a_deadline_is_typed_for_a_run_and_taken_back(
    home: Home, door: Door, browser: httpx.AsyncClient
) -> None:
    address = f"/runs/{home.run_id}/deadline"

    told = await browser.post(address, data={"deadline": "+6h"}, headers=forms.HTMX)

    assert told.status_code == 200
    assert home.run.deadline_at is not None
    assert "deadline none → " in told.text
    assert f'hx-post="{address}?undo=1"' in told.text
    assert 'name="deadline" value="none"' in told.text
    assert door.n_pokes == 1
    plain = await browser.post(address, data={"deadline": "none"})
    assert plain.status_code == 303
    assert runs.get_run(home.ledger, home.run_id).deadline_at is None


async def test_a_deadline_of_a_partition_goes_to_that_partition(
    home: Home, browser: httpx.AsyncClient
) -> None:
    answer = await browser.post(f"{forms.at(home)}/deadline", data={"deadline": "08:00"})

    assert answer.status_code == 303
    assert home.partition("B1_chat").deadline_at is not None
    assert home.partition("B2_code").deadline_at is None
    assert home.run.deadline_at is None


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "tomorrow",
        "2024-01-01T08:00",
        "x" * 70,
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00+23:59",
    ],
)
async def test_what_is_no_moment_is_told_and_changes_nothing(
    home: Home, browser: httpx.AsyncClient, typed: str
) -> None:
    answer = await browser.post(f"{forms.at(home)}/deadline", data={"deadline": typed})

    assert answer.status_code == 422
    assert "write a time of day" in answer.text.lower()
    assert home.partition("B1_chat").deadline_at is None


def ending(ends: Landing | None) -> str:
    """Return the page of a run with one partition; the bar of the whole run is drawn likewise."""
    return str(drawn(replace(RUN, partitions=(replace(BUDGETED, ends=ends),), ends=ends)))


def ticks(markup: str) -> list[str]:
    found = [attrs.get("class") or "" for tag, attrs in Elements(markup).found if tag == "rect"]
    return [name for name in found if name.startswith("tick")]


def test_the_words_and_the_tick_say_that_the_budget_ends_first() -> None:
    page = ending(Landing(percent=79, by=EndsBy.BUDGET))

    assert Elements(page).text.count("budget ends at 79 % of the samples") == 2
    assert ticks(page) == ["tick over"] * 2


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        (Landing(percent=99, by=EndsBy.BUDGET), "budget ends at 99 % of the samples"),
        (Landing(percent=62, by=EndsBy.DEADLINE), "the deadline ends it at about 62 %"),
    ],
)
def test_the_tick_stays_plain_where_the_budget_is_not_what_is_missing(
    ends: Landing, words: str
) -> None:
    page = ending(ends)

    assert Elements(page).text.count(words) == 2
    assert ticks(page) == ["tick"] * 2


def test_where_all_samples_fit_nothing_is_said() -> None:
    page = ending(None)

    assert "ends at" not in Elements(page).text
    assert "ends it" not in Elements(page).text
    assert ticks(page) == ["tick"] * 2


def test_a_deadline_stands_beside_the_name_until_it_has_passed() -> None:
    ahead = replace(BUDGETED, deadline_at=NOW + timedelta(hours=2))
    passed = replace(BUDGETED, deadline_at=NOW)
    clock = f"{(NOW + timedelta(hours=2)).astimezone():%H:%M}"

    assert f"until {clock}" in Elements(drawn(replace(RUN, partitions=(ahead,)))).text
    assert "until" not in Elements(drawn(replace(RUN, partitions=(passed,)))).text
    run = replace(RUN, deadline_at=NOW + timedelta(hours=2))
    assert f"Stops {clock}." in sheet_of(run).texts["verdict-s"]
