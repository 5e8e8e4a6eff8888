"""The rest of the keys: filter, pages, opening, help on every page; and none of them in a field."""

import pytest

from tests.browser.conftest import Tabs
from tests.browser.looking import until_moved
from tests.browser.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]
PAGES = [("a", "/activity"), ("s", "/server"), ("o", "")]


async def test_g_and_a_letter_go_to_a_page_and_the_help_is_on_each(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    for key, tail in PAGES:
        await page.keyboard.press("g")
        await page.keyboard.press(key)
        await page.wait_for_url(f"{stage.run_address}{tail}", wait_until="domcontentloaded")
        await page.keyboard.press("?")
        await page.locator("dialog#help[open]").wait_for()
        await page.keyboard.press("Escape")
        await page.locator("dialog#help:not([open])").wait_for(state="attached")


async def test_a_letter_alone_goes_nowhere_and_g_is_forgotten_in_a_field(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    await until_moved(page)
    await page.evaluate("document.body.mark = 1")
    for key in ("a", "s", "o"):
        await page.keyboard.press(key)
    await page.keyboard.press("/")
    await page.keyboard.type("gas?.t")
    assert await page.locator("#f-q").input_value() == "gas?.t"
    assert await page.locator("dialog#help[open], html.frozen, html[data-theme]").count() == 0
    assert await page.evaluate("document.body.mark") == 1


async def test_enter_opens_the_partition_that_was_chosen(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{stage.run_address}/p/B2_code**", wait_until="commit")


async def test_a_key_that_is_held_orders_once(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await page.keyboard.press("j")
    await page.keyboard.down("p")
    for _ in range(5):
        await page.keyboard.down("p")  # the browser calls these repeated
    await page.keyboard.up("p")
    await page.locator(".toast").wait_for()
    await until_moved(page, 2)
    assert len(stage.ward.posts()) == 1
