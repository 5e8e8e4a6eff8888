"""Orders over what somebody has seen, the way back, and what a restart, a stop and a resume say."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from app.api import carry_out
from app.api.schemas import (
    BudgetOrder,
    ConcurrencyOrder,
    DeadlineOrder,
    GoalOrder,
    PauseOrder,
    RunOrder,
)
from app.core.states import PartitionState, RunState
from app.core.types import RunId
from app.errors import ChangedError, InputError
from app.figures import RunFigures
from app.ledger import activity
from app.ledger.orders import RESTARTED, restarted
from tests.api.conftest import Door
from tests.api.home import Home
from tests.web import test_actions as forms


@pytest.fixture
async def browser(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    async with forms.somebody(home, door) as client:
        yield client


def order(home: Home, wanted: RunOrder) -> None:
    carry_out(home.ledger, home.run, wanted, who="bert", now=home.clock.now())


async def test_a_value_that_nobody_saw_is_not_overwritten(
    home: Home, browser: httpx.AsyncClient
) -> None:
    order(home, ConcurrencyOrder(partition="B1_chat", requests=96))
    data = {"requests": "128", "expect": "64"}
    told = await browser.post(f"{forms.at(home)}/concurrency", data=data, headers=forms.HTMX)
    plain = await browser.post(f"{forms.at(home)}/concurrency", data=data)
    for answer in (told, plain):
        assert answer.status_code == 409
        assert "B1_chat: concurrency was changed to 96 by bert" in answer.text
        assert "Set 128 anyway" in answer.text
        assert 'name="expect" value="96"' in answer.text
    assert 'hx-target="#toast"' in told.text
    assert home.partition("B1_chat").own_concurrency == 96
    data = {"requests": "128", "expect": "96"}
    assert (await browser.post(f"{forms.at(home)}/concurrency", data=data)).status_code == 303
    # who wants what is there already is in nobody's way
    data = {"requests": "128", "expect": "7"}
    assert (await browser.post(f"{forms.at(home)}/concurrency", data=data)).status_code == 303


async def test_a_limit_that_nobody_saw_is_not_overwritten(
    home: Home, browser: httpx.AsyncClient
) -> None:
    order(home, BudgetOrder(partition="B1_chat", tokens=1_000_000))
    order(home, GoalOrder(partition="B1_chat", samples=5))
    order(home, DeadlineOrder(partition="B1_chat", deadline="+3h"))
    before = home.partition("B1_chat")
    for verb, field, typed, now in (
        ("budget", "tokens", "2M", "1,000,000"),
        ("goal", "samples", "7", "5"),
        ("deadline", "deadline", "+6h", "+"),
    ):
        data = {field: typed, "expect": "none"}
        answer = await browser.post(f"{forms.at(home)}/{verb}", data=data, headers=forms.HTMX)
        assert answer.status_code == 409
        assert f"{verb} was changed to" in answer.text
        assert now in answer.text
        assert f"Set {typed} anyway" in answer.text
        assert home.partition("B1_chat") == before


def test_the_api_refuses_and_says_what_it_is_now(home: Home) -> None:
    order(home, ConcurrencyOrder(partition="B1_chat", requests=96, expect="share"))
    with pytest.raises(ChangedError, match="changed to 96 by bert") as caught:
        order(home, ConcurrencyOrder(partition="B1_chat", requests=3, expect="share"))
    assert caught.value.now == "96"
    assert caught.value.http_status == 409
    order(home, BudgetOrder(tokens=9, expect="none"))
    with pytest.raises(ChangedError, match="run: budget was changed to 9"):
        order(home, BudgetOrder(tokens=8, expect=7))
    order(home, BudgetOrder(tokens=8, expect=9))
    order(home, DeadlineOrder(deadline="+6h", expect="none"))
    deadline = home.run.deadline_at
    assert deadline is not None
    order(home, DeadlineOrder(deadline="+7h", expect=deadline.isoformat()))
    for expect in ("tomorrow", "2026-01-01T08:00"):
        with pytest.raises(InputError, match=f'expect "{expect}"'):
            order(home, DeadlineOrder(deadline="+6h", expect=expect))


async def test_a_bad_expectation_changes_nothing(home: Home, browser: httpx.AsyncClient) -> None:
    for expect in ("0", "-1", "x", "9" * 50):
        data = {"requests": "5", "expect": expect}
        answer = await browser.post(f"{forms.at(home)}/concurrency", data=data, headers=forms.HTMX)
        assert answer.status_code == 422
        assert home.partition("B1_chat").own_concurrency is None


BACK = (
    ("/runs/{run}?range=24h", "/runs/{run}?range=24h"),
    ("/runs/{run}/p/B1_chat?range=1h", "/runs/{run}/p/B1_chat?range=1h"),
    ("/runs/{run}/failures?partition=B1_chat", "/runs/{run}/failures?partition=B1_chat"),
    ("/runs/{run}/samples/3", "/runs/{run}/samples/3"),
    ("/runs/{run}/stop", "/runs/{run}"),
    ("/runs/{run}/p/1/concurrency", "/runs/{run}"),
    ("/runs/{run}9", "/runs/{run}"),
    ("/runs/{run}/../../login", "/runs/{run}"),
    ("http://evil.example/runs/{run}?range=24h", "/runs/{run}"),
    ("", "/runs/{run}"),
)


async def test_a_plain_form_goes_back_to_where_it_was_sent_from(
    home: Home, browser: httpx.AsyncClient
) -> None:
    for number, (referer, back) in enumerate(BACK):
        sent_from = referer.format(run=home.run_id)
        if sent_from.startswith("/"):
            sent_from = f"{forms.ORIGIN}{sent_from}"
        verb = ("pause", "resume")[number % 2]
        headers = {"referer": sent_from}
        answer = await browser.post(f"{forms.at(home)}/{verb}", headers=headers)
        assert answer.headers["location"] == back.format(run=home.run_id), referer


async def test_requests_start_again_by_a_pause_that_ends_by_itself(
    home: Home, browser: httpx.AsyncClient
) -> None:
    told = await browser.post(f"{forms.at(home)}/restart", headers=forms.HTMX)
    assert "takes its requests back, saves them and sends them anew" in told.text
    partition = home.partition("B1_chat")
    assert (partition.state, partition.reason) == (PartitionState.PAUSED, RESTARTED)
    again = await browser.post(f"{forms.at(home)}/restart", headers=forms.HTMX)
    assert again.status_code == 409  # it does so already
    assert restarted(home.ledger, partition.id, home.clock.now())
    assert home.partition("B1_chat").state is PartitionState.ACTIVE
    assert not restarted(home.ledger, partition.id, home.clock.now())
    order(home, PauseOrder(partitions=("B1_chat",)))
    assert not restarted(home.ledger, partition.id, home.clock.now())  # a person's own


async def test_what_is_paused_by_hand_stays_so_unless_it_is_asked_for(
    home: Home, browser: httpx.AsyncClient
) -> None:
    order(home, PauseOrder(partitions=("B1_chat",)))
    at = f"/runs/{home.run_id}"
    await browser.post(f"{at}/pause")
    shown = (await browser.get(at)).text
    assert "Also resume the 1 paused earlier" in shown
    await browser.post(f"{at}/resume")
    assert home.partition("B1_chat").state is PartitionState.PAUSED
    await browser.post(f"{at}/pause")
    told = await browser.post(f"{at}/resume", data={"also_paused": "1"}, headers=forms.HTMX)
    assert "Undo" not in told.text  # who was paused is not known any more
    assert home.partition("B1_chat").state is PartitionState.ACTIVE
    assert home.run.state is RunState.RUNNING


async def test_why_a_run_is_stopped_stands_with_it(home: Home, browser: httpx.AsyncClient) -> None:
    at = f"/runs/{home.run_id}"
    long = await browser.post(f"{at}/stop", data={"reason": "x" * 201}, headers=forms.HTMX)
    assert long.status_code == 422
    assert home.run.state is RunState.RUNNING
    data = {"finish": "1", "reason": " the disk\nis changed "}
    told = await browser.post(f"{at}/stop", data=data, headers=forms.HTMX)
    assert f'hx-post="{at}/resume?undo=1"' in told.text
    assert home.run.reason == "the disk is changed"
    newest = activity.latest(home.ledger, home.run_id, 1)[0]
    assert (newest.event, newest.detail) == ("stop", "the disk is changed")
    await browser.post(f"{at}/resume", headers=forms.HTMX)
    assert (home.run.state, home.run.reason) == (RunState.RUNNING, "")
    assert home.partition("B1_chat").state is PartitionState.ACTIVE


async def test_a_pause_is_told_when_it_is_done(home: Home, browser: httpx.AsyncClient) -> None:
    told = await browser.post(f"{forms.at(home)}/pause", headers=forms.HTMX)
    assert f'hx-get="{forms.at(home)}/paused"' in told.text
    said = await browser.get(f"{forms.at(home)}/paused", headers=forms.HTMX)
    assert said.text == "B1_chat paused"
    assert (await browser.get(f"/runs/{home.run_id}/paused")).text == "night goes on again"


@pytest.mark.slow
async def test_a_pause_that_nobody_answers_is_told_too(home: Home) -> None:
    class Hanging(Door):
        def figures(self, run_id: RunId) -> RunFigures:
            run = super().figures(run_id)
            busy = tuple(replace(each, n_in_flight=3) for each in run.partitions)
            return replace(run, partitions=busy)

    async with forms.somebody(home, Hanging(home)) as browser:
        order(home, PauseOrder(partitions=("B1_chat",)))
        said = await browser.get(f"{forms.at(home)}/paused")
    assert said.text == "B1_chat: asked 3 s ago, the runner has not answered"


async def test_ui_04_orders_of_twenty_tabs_at_once_are_one_after_the_other(
    home: Home, browser: httpx.AsyncClient
) -> None:
    at = forms.at(home)
    verbs = ["pause", "resume"] * 10
    answers = await asyncio.gather(*(browser.post(f"{at}/{verb}") for verb in verbs))
    assert {each.status_code for each in answers} <= {303, 409}
    data = [{"requests": str(n), "expect": "share"} for n in range(2, 12)]
    answers = await asyncio.gather(*(browser.post(f"{at}/concurrency", data=d) for d in data))
    assert sorted(each.status_code for each in answers) == [303] + [409] * 9
