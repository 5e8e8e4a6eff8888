"""Orders as people give them: over what somebody else has changed, taken back, weighed, explained.

Each control also without script. ui-04: of two tabs, the slower one is told, and nothing is lost.
"""

from functools import partial

import pytest
from playwright.async_api import Page, expect

from app.core.states import PartitionState, RunState
from app.ledger import activity
from tests.browser.conftest import Tabs
from tests.browser.looking import (
    concurrency,
    own_concurrency,
    row,
    stands_under,
    until_moved,
    until_reads,
)
from tests.browser.stage import Stage, pause, set_concurrency
from tests.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


TOASTS = "#toast .toast:not([hidden])"


def holds(stage: Stage, wanted: int) -> bool:
    return own_concurrency(stage, "B1_chat") == wanted


async def type_concurrency(page: Page, name: str, value: str) -> None:
    await concurrency(page, name).click()
    await concurrency(page, name).fill(value)


async def test_ui_04_the_slower_of_two_tabs_is_told_and_may_do_it_all_the_same(
    stage: Stage, tabs: Tabs
) -> None:
    set_concurrency(stage, "B1_chat", 64)
    quick, slow = await tabs.open(stage.run_address), await tabs.open(stage.run_address)
    await type_concurrency(slow, "B1_chat", "128")  # begun over 64, and left standing
    await type_concurrency(quick, "B1_chat", "96")
    await quick.keyboard.press("Enter")
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 96, "the quick one's 96")
    await until_moved(slow, 3)  # frames bring the new value, the reader's hands keep theirs
    await expect(concurrency(slow, "B1_chat")).to_have_value("128")

    await slow.keyboard.press("Enter")

    told = slow.locator(TOASTS).last
    await until_reads(told, text="B1_chat: concurrency was changed to 96 by operator")
    await expect(slow.locator(TOASTS)).to_have_count(1)
    assert own_concurrency(stage, "B1_chat") == 96
    await expect(concurrency(slow, "B1_chat")).to_have_value("96")
    await expect(concurrency(slow, "B1_chat")).to_be_focused()
    assert await stands_under(told, concurrency(slow, "B1_chat"))
    await told.get_by_role("button", name="Set 128 anyway").click()
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 128, "128 all the same")
    # and the next order of the same tab is over what holds now
    await until_reads(concurrency(slow, "B1_chat"), value="128")
    await row(slow, "B1_chat").get_by_role("button", name="Less concurrency").click()
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 120, "120")


async def test_presses_one_after_the_other_are_nobody_elses(stage: Stage, tabs: Tabs) -> None:
    set_concurrency(stage, "B1_chat", 64)
    page = await tabs.open(stage.run_address)
    more = row(page, "B1_chat").get_by_role("button", name="More concurrency")
    stage.is_ticking = False  # no frame comes between them
    for wanted in (72, 80, 88):
        await more.click()
        has_it = partial(holds, stage, wanted)
        await wait_until(has_it, f"{wanted} in the ledger")
    assert not await page.locator("#toast .toast.bad").count()


async def test_a_key_takes_back_the_newest_order_then_the_one_before(
    stage: Stage, tabs: Tabs
) -> None:
    set_concurrency(stage, "B1_chat", 64)
    page = await tabs.open_with_clock(stage.run_address)
    await page.keyboard.press("j")
    await page.keyboard.press("+")
    await page.clock.run_for(700)
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 72, "72")
    await row(page, "B2_code").get_by_role("button", name="Pause B2_code").click()
    await until_reads(page.locator(TOASTS).last, text="B2_code paused")
    await page.clock.run_for(11_000)  # the messages are gone, what they offered is not
    await expect(page.locator(TOASTS)).to_have_count(0)

    await page.keyboard.press("u")
    active = PartitionState.ACTIVE
    await wait_until(lambda: stage.home.partition("B2_code").state is active, "B2_code going on")
    await page.keyboard.press("u")
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 64, "64 again")

    last = page.locator(TOASTS).last
    await until_reads(last, text="concurrency 72 → 64")
    await expect(last.get_by_role("button", name="Redo")).to_have_count(1)


async def test_what_a_limit_means_is_said_while_it_is_typed(stage: Stage, tabs: Tabs) -> None:
    stage.home.keep("B1_chat", 3)  # of 50 tokens each
    page = await tabs.open(stage.run_address)
    await row(page, "B1_chat").locator("details.more summary").click()
    panel = row(page, "B1_chat").locator("details.more[open]")
    await panel.get_by_role("textbox", name="Budget of B1_chat").fill("100")
    means = panel.locator("form.budget .means")
    await until_reads(means, text="already 150 made; nothing new would begin")
    await until_moved(page, 2)
    pause(stage, "B1_chat")  # its row is sent anew
    await until_reads(row(page, "B1_chat"), text="Paused")
    await until_reads(means, text="already 150 made; nothing new would begin")
    await panel.get_by_role("textbox", name="Budget of B1_chat").fill("12x")
    await until_reads(means, text="12x")
    deadline = panel.get_by_role("textbox", name="Deadline of B1_chat")
    await deadline.fill("+6h")
    await until_reads(panel.locator("form.deadline .means"), text="pauses in 6h")
    assert not stage.ward.posts()


async def test_each_control_works_without_script(stage: Stage, tabs: Tabs) -> None:
    set_concurrency(stage, "B1_chat", 64)
    page = await tabs.open(f"{stage.run_address}?range=24h", java_script_enabled=False)
    await type_concurrency(page, "B1_chat", "128")
    set_concurrency(stage, "B1_chat", 96)
    await page.keyboard.press("Enter")
    await until_reads(page.locator("main"), text="changed to 96 by bert")
    await page.get_by_role("button", name="Set 128 anyway").click()
    await page.wait_for_url(f"{stage.run_address}*")
    assert own_concurrency(stage, "B1_chat") == 128

    await page.goto(f"{stage.run_address}?range=24h")
    await row(page, "B1_chat").get_by_role("button", name="Pause B1_chat").click()
    await page.wait_for_url(f"{stage.run_address}?range=24h")  # where it was sent from
    await page.get_by_role("button", name="Pause all").click()
    await expect(page.get_by_role("button", name="Resume 2 partitions")).to_be_visible()
    await page.get_by_role("button", name="Also resume the 1 paused earlier").click()
    assert stage.home.partition("B1_chat").state is PartitionState.ACTIVE
    await row(page, "B2_code").locator("details.more summary").click()
    await page.get_by_role("textbox", name="Goal of B2_code").fill("5")
    await page.keyboard.press("Enter")
    await until_reads(row(page, "B2_code"), text="of 5 samples")

    await page.get_by_role("link", name="Stop run").click()
    await page.get_by_label("Why?").fill("the disk is changed")
    await page.get_by_role("button", name="Finish those, then stop").click()
    await page.wait_for_url(stage.run_address)
    assert (stage.home.run.state, stage.home.run.reason) == (
        RunState.STOPPING,
        "the disk is changed",
    )
    newest = activity.latest(stage.home.ledger, stage.home.run_id, 1)[0]
    assert (newest.event, newest.detail) == ("stop", "the disk is changed")
    await page.get_by_role("button", name="Keep running").click()
    assert stage.home.run.state is RunState.RUNNING
    assert stage.home.partition("B1_chat").state is PartitionState.ACTIVE


async def test_the_question_before_a_stop_has_a_harmless_first_answer(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    await page.get_by_role("link", name="Stop run").click()
    await expect(page.get_by_role("button", name="Keep running")).to_be_focused()
    await page.get_by_label("Why?").fill("why not")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Keep running").click()
    await expect(page.locator("dialog[open]")).to_have_count(0)
    assert not stage.ward.posts()
    await page.get_by_role("link", name="Stop run").click()
    await page.get_by_role("button", name="Save and stop").click()
    await wait_until(lambda: stage.home.run.state is RunState.STOPPING, "the stop")
    await page.locator(TOASTS).get_by_role("button", name="Undo").click()
    await wait_until(lambda: stage.home.run.state is RunState.RUNNING, "the run going on")
    assert stage.home.run.reason == ""


async def test_a_double_click_is_one_order(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await row(page, "B2_code").get_by_role("button", name="Pause B2_code", exact=True).dblclick()
    await until_reads(page.locator(TOASTS).last, text="B2_code paused")
    await until_reads(row(page, "B2_code"), text="Paused")
    assert len(stage.ward.posts()) == 1
    await expect(page.locator(TOASTS)).to_have_count(1)
