"""The page's forms for budget and goal, and what it says of what they mean."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.landing import EndsBy, Landing
from app.core.spec import parse_tokens
from app.core.types import RunId
from app.figures import PartitionFigures, RunFigures
from app.ledger import activity
from app.web.gallery.invented import BUDGETED, PARTITION, RUN
from app.web.limit_forms import meaning
from app.web.wording import typed_tokens
from tests.api.conftest import Door
from tests.api.cut_short import cut_short
from tests.api.home import Home
from tests.web import test_actions as forms
from tests.web.test_overview import Elements, drawn


@pytest.fixture
async def browser(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    async with forms.somebody(home, door) as client:
        yield client


async def test_a_plain_form_sets_a_budget_and_goes_back_to_the_page(
    home: Home, door: Door, browser: httpx.AsyncClient
) -> None:
    answer = await browser.post(f"{forms.at(home)}/budget", data={"tokens": " 2.5M "})

    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{home.run_id}")
    assert home.partition("B1_chat").token_budget == 2_500_000
    assert home.partition("B2_code").token_budget is None
    assert home.run.token_budget is None
    assert door.n_pokes == 1
    newest = activity.latest(home.ledger, home.run_id, 1)[0]
    assert (newest.who, newest.event) == ("anna (page)", "budget")
    shown = (await browser.get(f"/runs/{home.run_id}")).text
    assert 'name="tokens" value="2.5M"' in shown


async def test_a_budget_is_taken_back_to_what_it_was(
    home: Home, browser: httpx.AsyncClient
) -> None:
    address = f"{forms.at(home)}/budget"
    first = await browser.post(address, data={"tokens": "12345678"}, headers=forms.HTMX)
    assert "B1_chat: budget none → 12345678<" in first.text
    assert 'name="tokens" value="none"' in first.text

    second = await browser.post(address, data={"tokens": "12M"}, headers=forms.HTMX)

    assert "B1_chat: budget 12345678 → 12M<" in second.text
    assert f'hx-post="{address}?undo=1"' in second.text
    assert 'name="tokens" value="12345678"' in second.text
    await browser.post(address, data={"tokens": "none"}, headers=forms.HTMX)
    assert home.partition("B1_chat").token_budget is None


@pytest.mark.parametrize("present", [None, "12M"])
async def test_a_plus_alone_says_nothing(
    home: Home, browser: httpx.AsyncClient, present: str | None
) -> None:
    address = f"{forms.at(home)}/budget"
    if present:
        await browser.post(address, data={"tokens": present}, headers=forms.HTMX)

    refused = await browser.post(address, data={"tokens": "+"}, headers=forms.HTMX)

    assert refused.status_code == 422
    said = "does not say how much more" if present else "there is no budget now"
    assert said in refused.json()["error"]["message"]


async def test_the_run_has_a_budget_of_its_own(home: Home, browser: httpx.AsyncClient) -> None:
    told = await browser.post(
        f"/runs/{home.run_id}/budget", data={"tokens": "1G"}, headers=forms.HTMX
    )

    assert "night: budget none → 1G<" in told.text
    assert home.run.token_budget == 10**9
    assert home.partition("B1_chat").token_budget is None
    shown = (await browser.get(f"/runs/{home.run_id}")).text
    assert 'id="verdict-budget" name="tokens" value="1G"' in shown


async def test_a_goal_is_set_and_taken_back(home: Home, browser: httpx.AsyncClient) -> None:
    address = f"{forms.at(home)}/goal"
    first = await browser.post(address, data={"samples": "7,000"}, headers=forms.HTMX)
    assert "B1_chat: goal none → 7,000<" in first.text
    assert home.partition("B1_chat").goal_samples == 7_000

    second = await browser.post(address, data={"samples": "none"}, headers=forms.HTMX)

    assert 'name="samples" value="7000"' in second.text
    assert home.partition("B1_chat").goal_samples is None


@pytest.mark.parametrize("verb", ["budget", "goal"])
async def test_a_limit_below_what_is_there_is_set_and_said(
    home: Home, browser: httpx.AsyncClient, verb: str
) -> None:
    home.keep("B1_chat", 3)
    data = {"tokens": "1", "samples": "2"}

    told = await browser.post(f"{forms.at(home)}/{verb}", data=data, headers=forms.HTMX)

    assert told.status_code == 200
    assert "already, so nothing new is begun" in told.text


@pytest.mark.parametrize("typed", ["", "many", "0", "-5", "1.5", "12,000,000", "2,5M", "9" * 61])
@pytest.mark.parametrize("of_run", [True, False])
async def test_a_bad_budget_changes_nothing_and_names_field_and_value(
    home: Home, door: Door, browser: httpx.AsyncClient, typed: str, *, of_run: bool
) -> None:
    address = f"/runs/{home.run_id}/budget" if of_run else f"{forms.at(home)}/budget"
    toast = await browser.post(address, data={"tokens": typed}, headers=forms.HTMX)
    plain = await browser.post(address, data={"tokens": typed})

    for answer in (toast, plain):
        assert answer.status_code == 422
        assert "budget" in answer.text.lower()
        assert typed[:20] in answer.text
        assert "12M" in answer.text or "10M" in answer.text
    assert plain.headers["content-type"].startswith("text/html")
    assert home.run.token_budget is None
    assert home.partition("B1_chat").token_budget is None
    assert door.n_pokes == 0


@pytest.mark.parametrize("typed", ["", "0", "-1", "7k", "1e3", "٣", "1000000001"])
async def test_a_bad_goal_changes_nothing_and_names_field_and_value(
    home: Home, browser: httpx.AsyncClient, typed: str
) -> None:
    address = f"{forms.at(home)}/goal"
    answer = await browser.post(address, data={"samples": typed}, headers=forms.HTMX)

    assert answer.status_code == 422
    message = answer.json()["error"]["message"]
    assert message.startswith(f'goal "{typed}" is not a whole number' if typed else "no goal")
    assert home.partition("B1_chat").goal_samples is None


async def test_a_run_has_no_goal_of_its_own(home: Home, browser: httpx.AsyncClient) -> None:
    answer = await browser.post(f"/runs/{home.run_id}/goal", data={"samples": "5"})
    assert answer.status_code == 404


async def test_how_many_answers_could_be_extended_is_said(
    home: Home, browser: httpx.AsyncClient
) -> None:
    cut_short(home, n=2)
    shown = (await browser.get(f"/runs/{home.run_id}")).text
    assert re.findall(r'<small id="p\d+-u">([^<]*)<', shown) == ["2 truncated"]


@dataclass
class LookingDoor(Door):
    """A service whose first look after an order is still the one before it."""

    n_looks: int = 0

    def figures(self, run_id: RunId) -> RunFigures:
        self.n_looks += 1
        run = super().figures(run_id)
        if self.n_looks == 1:
            return replace(run, at=run.at - timedelta(seconds=2))
        partitions = tuple(replace(each, ends=LANDS) for each in run.partitions)
        return replace(run, partitions=partitions, ends=LATE)


async def test_the_message_waits_for_the_look_that_knows_what_the_order_means(home: Home) -> None:
    door = LookingDoor(home)
    async with forms.somebody(home, door) as browser:
        data = {"tokens": "12M"}
        told = await browser.post(f"{forms.at(home)}/budget", data=data, headers=forms.HTMX)
        assert "B1_chat: budget none → 12M; ends at 92 % of the samples<" in told.text
        assert door.n_looks == 2
        told = await browser.post(
            f"/runs/{home.run_id}/budget", data={"tokens": "1G"}, headers=forms.HTMX
        )
        assert "night: budget none → 1G; the deadline ends it at about 62 %<" in told.text
        await browser.post(f"{forms.at(home)}/budget", data=data)
        assert door.n_looks == 3  # a plain form goes back to the page at once


LANDS = Landing(percent=92, by=EndsBy.BUDGET)
LATE = Landing(percent=62, by=EndsBy.DEADLINE)


@pytest.mark.parametrize(
    ("kind", "now", "said"),
    [
        ("budget", replace(BUDGETED, ends=LANDS), "ends at 92 % of the samples"),
        ("goal", replace(BUDGETED, ends=LANDS), "budget ends at 92 % of the samples"),
        ("budget", replace(RUN, ends=LATE), "the deadline ends it at about 62 %"),
        ("budget", BUDGETED, ""),
        ("goal", replace(PARTITION, goal_samples=9_999), ""),
        (
            "budget",
            replace(BUDGETED, token_budget_tokens=6_290_000, ends=LANDS),
            "6.29M tokens are used already, so nothing new is begun",
        ),
        (
            "goal",
            replace(PARTITION, goal_samples=4_212),
            "4,212 answers are there already, so nothing new is begun",
        ),
    ],
)
def test_what_a_limit_means(kind: str, now: PartitionFigures | RunFigures, said: str) -> None:
    assert meaning(kind, now) == said


@given(st.integers(1, 2**53 - 1))
def test_a_budget_is_shown_as_it_could_be_typed_again(n: int) -> None:
    assert parse_tokens(typed_tokens(n)) == n


def test_only_the_panels_hold_rarer_orders() -> None:
    """Normal is quiet: one mark in a row, and nothing under its name."""
    text = Elements(drawn(RUN)).text
    assert text.count("More for B1_part") == 1
    assert text.count("More for the run") == 1
