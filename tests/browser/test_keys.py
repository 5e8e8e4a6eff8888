"""Keys, switches and messages: everything by hand or by key, and the keys can be turned off."""

import pytest

from app.core.states import PartitionState
from tests.browser.conftest import Tabs
from tests.browser.looking import concurrency, own_concurrency, until_moved
from tests.browser.stage import Stage, set_concurrency
from tests.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_rows_are_chosen_and_paused_by_keys(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await page.keyboard.press("p")
    await wait_until(
        lambda: stage.home.partition("B2_code").state is PartitionState.PAUSED, "the pause"
    )
    await until_moved(page, 2)
    focused = "document.activeElement.closest('tr').dataset.name"
    assert await page.evaluate(focused) == "B2_code"


async def test_concurrency_is_changed_and_typed_by_keys(stage: Stage, tabs: Tabs) -> None:
    set_concurrency(stage, "B1_chat", 20)
    page = await tabs.open(stage.run_address)
    await page.keyboard.press("j")
    await page.keyboard.press("+")
    await page.keyboard.press("+")
    await page.keyboard.press("-")
    await page.keyboard.press("*")
    assert await concurrency(page, "B1_chat").input_value() == "48"
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 48, "the ledger to say 48")
    await page.keyboard.press("e")
    await page.keyboard.type("5")
    assert await concurrency(page, "B1_chat").input_value() == "5"
    await page.keyboard.press("Escape")
    assert await concurrency(page, "B1_chat").input_value() == "48"
    await page.keyboard.press("j")
    focused = "document.activeElement.closest('tr').dataset.name"
    assert await page.evaluate(focused) == "B2_code"
    assert len(stage.ward.posts()) == 1


async def test_single_keys_can_be_turned_off_for_good(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await page.keyboard.press("?")
    await page.locator("dialog#help[open]").wait_for()
    await page.keyboard.press("j")  # not while a dialog is open
    await page.get_by_label("Single-letter keys are on").uncheck()
    await page.keyboard.press("Escape")
    for _ in range(2):
        await page.keyboard.press("t")
        await page.keyboard.press("j")
        assert await page.locator("html[data-theme]").count() == 0
        assert await page.evaluate("document.activeElement.closest('tr')") is None
        await page.reload()
    assert not await page.get_by_label("Single-letter keys are on").is_checked()


@pytest.mark.parametrize("held", ["Control", "Alt", "Meta"])
async def test_keys_of_the_browser_stay_the_browsers(stage: Stage, tabs: Tabs, held: str) -> None:
    page = await tabs.open(stage.run_address)
    await page.evaluate("dispatchEvent(new Event('ready'))")
    await page.locator("body").dispatch_event(
        "keydown", {"key": ".", f"{'ctrl' if held == 'Control' else held.lower()}Key": True}
    )
    assert await page.locator("html.frozen").count() == 0


async def test_the_theme_is_kept(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address, color_scheme="light")
    await page.get_by_role("button", name="Theme").click()
    assert await page.locator("html").get_attribute("data-theme") == "dark"
    await page.reload()
    assert await page.locator("html").get_attribute("data-theme") == "dark"


async def test_a_message_stays_while_somebody_is_at_it_and_can_be_taken_back(
    stage: Stage, tabs: Tabs
) -> None:
    set_concurrency(stage, "B1_chat", 64)
    page = await tabs.open_with_clock(stage.run_address)
    await concurrency(page, "B1_chat").fill("70")
    await page.keyboard.press("Enter")
    toast = page.locator(".toast")
    await toast.wait_for()
    await toast.get_by_role("button", name="Undo").focus()
    await page.clock.fast_forward(15_000)
    assert await toast.count() == 1
    await page.keyboard.press("Enter")
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 64, "the undo")
    await page.locator("body").click(position={"x": 2, "y": 2})
    for _ in range(4):
        await page.clock.fast_forward(11_000)
    await page.wait_for_function("document.querySelectorAll('.toast').length === 0")
