"""The page of failures and its retries, over a real ledger, with and without script."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest
from sqlalchemy import text

from app.core.reasons import group_of
from app.core.states import RunState, SampleState
from app.ledger import activity, failures, orders
from app.ledger.counters import recount
from app.ledger.orders import Order
from tests.api.conftest import Door
from tests.api.home import Home
from tests.ledger.plans import recorded, scans
from tests.web.test_actions import HTMX, somebody
from tests.web.test_samples import shown, words

FAILURES = "/runs/1/failures"
TOO_LONG = "the server answered 400: the input ({} tokens) is longer than the context"


@pytest.fixture
async def browser(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    async with somebody(home, door) as client:
        yield client


@pytest.fixture
def failed(home: Home) -> Home:
    """A run in which five prompts are too long and three requests failed, in two partitions."""
    home.fail("B1_chat", 3, reason=TOO_LONG.format(40_123))
    home.fail("B2_code", 2, reason=TOO_LONG.format(50_000))
    home.fail("B1_chat", 1, reason="boom 1")
    home.fail("B2_code", 2, reason="boom 2")
    return home


def n_failed(home: Home) -> tuple[int, int]:
    for name in home.names:
        assert recount(home.ledger, home.partition(name).id) == []
    return home.partition("B1_chat").counts.failed, home.partition("B2_code").counts.failed


async def test_reasons_stand_in_groups_over_partitions(
    browser: httpx.AsyncClient, failed: Home
) -> None:
    page = await shown(browser, FAILURES)

    text = words(page)
    assert "8 failed: 2 reasons" in text
    assert TOO_LONG.format("#") in text
    assert "boom #" in text
    assert "5 of them would fail again: they exceed the context." in text
    assert "Retry the other 3" in text
    assert "Retry all 8" in text
    assert re.findall(r"Retry (\d)", text) == ["5", "3"]
    assert 'href="/runs/1/samples?partition=B2_code&amp;state=failed"' in page


async def test_the_heading_counts_what_failed_apart_as_the_tab_does(
    browser: httpx.AsyncClient, failed: Home
) -> None:
    failed.keep("B1_chat", 1, state=SampleState.EMPTY)
    failed.keep("B2_code", 1, state=SampleState.SUSPECT)

    assert "8 failed, 2 empty or suspect: 4 reasons" in words(await shown(browser, FAILURES))


@pytest.mark.slow
async def test_the_filter_takes_what_it_says(browser: httpx.AsyncClient, failed: Home) -> None:
    for query, told in (
        ("?partition=B1_chat", "4 failed: 2 reasons"),
        ("?reason=BOOM", "3 failed: 1 reason"),
        ("?reason=boom+2", "2 failed: 1 reason"),
        ("?state=failed", "8 failed: 2 reasons"),
        ("?state=empty", "No failure matches “empty”. Show all."),
        ("?reason=<b>", "No failure matches “<b>”. Show all."),
    ):
        assert told in words(await shown(browser, FAILURES + query))


@pytest.mark.slow
async def test_a_run_without_failures_says_so(browser: httpx.AsyncClient) -> None:
    page = words(await shown(browser, FAILURES))

    assert "Nothing has failed." in page
    assert "Retry" not in page


async def test_one_press_tries_exactly_a_group_again(
    browser: httpx.AsyncClient, failed: Home, door: Door
) -> None:
    data = {"group": group_of(SampleState.FAILED, "boom 77")}

    answered = await browser.post(f"{FAILURES}/retry", data=data, headers=HTMX)

    assert answered.status_code == 200
    assert "3 samples pending again: B1_chat 1, B2_code 2. This cannot be taken back" in words(
        answered.text
    )
    assert "Undo" not in answered.text
    assert n_failed(failed) == (3, 2)
    assert door.n_pokes == 1
    assert "5 failed: 1 reason" in words(await shown(browser, FAILURES))  # and not after seconds
    noted = activity.latest(failed.ledger, failed.run_id)
    assert [each.detail for each in noted if each.event == "retry"] == [
        "B2_code: 2 failed samples, such as: boom 2",
        "B1_chat: 1 failed sample, such as: boom 1",
    ]
    again = await browser.post(f"{FAILURES}/retry", data=data, headers=HTMX)
    assert again.status_code == 409


async def test_what_a_used_budget_holds_back_is_said(
    browser: httpx.AsyncClient, failed: Home
) -> None:
    with failed.ledger.write() as connection:
        connection.execute(
            text("UPDATE partition SET budget_reached = true WHERE name = 'B2_code'")
        )
    data = {"group": group_of(SampleState.FAILED, "boom 77")}

    answered = await browser.post(f"{FAILURES}/retry", data=data, headers=HTMX)

    assert "The token budget of B2_code is used up: raise it to send them." in words(answered.text)


@pytest.mark.slow
async def test_the_other_ones_leave_those_that_would_fail_again(
    browser: httpx.AsyncClient, failed: Home
) -> None:
    await browser.post(f"{FAILURES}/retry", data={"spare": "1"}, headers=HTMX)

    assert n_failed(failed) == (3, 2)


async def test_without_script_a_page_asks_first_and_then_does_it(
    browser: httpx.AsyncClient, failed: Home
) -> None:
    data = {"partition": "B1_chat", "reason": "boom"}
    asked = await browser.post(f"{FAILURES}/retry", data=data)
    assert asked.status_code == 303
    assert n_failed(failed) == (4, 4)

    page = await shown(browser, asked.headers["location"])
    assert "Try 1 sample again?" in words(page)
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    assert fields == {**data, "sure": "1"}
    done = await browser.post(f"{FAILURES}/retry", data=fields)

    assert done.status_code == 303
    assert done.headers["location"] == f"{FAILURES}?partition=B1_chat&reason=boom"
    assert n_failed(failed) == (3, 4)


@pytest.mark.slow
async def test_the_question_names_what_would_fail_again(
    browser: httpx.AsyncClient, failed: Home
) -> None:
    page = words(await shown(browser, f"{FAILURES}/retry"))

    assert "5 of them would fail again: they exceed the context." in page
    assert "Retry the other 3" in page


@pytest.mark.slow
async def test_a_finished_run_goes_on_with_what_is_tried_again(
    browser: httpx.AsyncClient, failed: Home
) -> None:
    for name in failed.names:
        failed.keep(name, 6)
        failed.leave()
        with failed.ledger.write() as connection:
            connection.exec_driver_sql("UPDATE partition SET sealed_at_ms = 1")
    order = Order(run_id=failed.run_id, who="system", now=failed.clock.now())
    assert orders.finish_run(failed.ledger, order)

    await browser.post(f"{FAILURES}/retry", data={"sure": "1"})

    assert failed.run.state is RunState.RUNNING
    assert n_failed(failed) == (0, 0)


@pytest.mark.slow
async def test_what_was_rejected_is_shown_and_not_offered(
    browser: httpx.AsyncClient, home: Home
) -> None:
    with home.ledger.write() as connection:
        connection.exec_driver_sql(
            "UPDATE sample SET state = 'rejected', reason = 'broken JSON' WHERE position = 0"
        )
        connection.exec_driver_sql("UPDATE partition SET n_pending = n_pending - 1, n_rejected = 1")

    page = words(await shown(browser, FAILURES))

    assert "broken JSON" in page
    assert "cannot be tried again" in page
    assert "Retry" not in page


@pytest.mark.slow
async def test_counts_that_ended_early_say_that_there_are_more(
    browser: httpx.AsyncClient, failed: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "LARGEST_COUNT", 1)
    assert "+ failed: 2 reasons" in words(await shown(browser, FAILURES))

    monkeypatch.setattr(failures, "LARGEST_COUNT", 100)
    monkeypatch.setattr(failures, "MOST_REASONS", 2)
    monkeypatch.setattr(failures, "_LEAST_REASONS", 2)
    page = words(await shown(browser, f"{FAILURES}?partition=B1_chat"))
    assert "+ failed" in page
    assert "More different reasons than were looked at: B1_chat (failed)." in page
    assert re.search(r"Retry all \d\+", page)


@pytest.mark.slow
async def test_a_query_that_means_nothing_is_refused_by_name(browser: httpx.AsyncClient) -> None:
    for query, status, told in (
        ("state=ok", 422, 'State "ok" is none of failed, rejected, empty, suspect'),
        ("partition=B9", 404, 'no partition "B9"'),
        (f"reason={'x' * 400}", 422, "Reason has 400 characters"),
    ):
        answered = await browser.get(f"{FAILURES}?{query}")
        assert answered.status_code == status
        assert told in words(answered.text)


async def test_the_page_of_failures_walks_over_no_table(
    browser: httpx.AsyncClient, failed: Home
) -> None:
    with recorded(failed.ledger) as asked:
        await shown(browser, FAILURES)
        await shown(browser, f"{FAILURES}?partition=B1_chat&state=failed&reason=boom")
        await browser.post(f"{FAILURES}/retry", data={"sure": "1"})

    for table in ("sample", "attempt"):
        assert scans(failed.ledger, asked, table) == {}
