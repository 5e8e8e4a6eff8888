"""Filter and order of the rows: by hand, by address, without script; never under a hand."""

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Tabs
from tests.browser.looking import row, until_moved, until_reads
from tests.browser.stage import Stage, pause

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]
CDN_MODES = pytest.mark.parametrize("cdn", ["ok", "refused"])


async def names(page: Page) -> list[str]:
    shown = await page.locator("#rows tr:visible").all()
    return [await each.get_attribute("data-name") or "" for each in shown]


async def until_names(page: Page, *wanted: str) -> None:
    found = (
        "wanted => [...document.querySelectorAll('#rows tr:not([hidden])')]"
        ".map(row => row.dataset.name).join() === wanted"
    )
    await page.wait_for_function(found, arg=",".join(wanted))


@CDN_MODES
async def test_typing_filters_at_once_and_the_address_follows(
    stage: Stage, tabs: Tabs, cdn: str
) -> None:
    page = await tabs.open(stage.run_address, cdn)
    await until_moved(page)
    await page.keyboard.press("/")
    await page.keyboard.type("co")
    assert await names(page) == ["B2_code"]
    assert page.url == f"{stage.run_address}?q=co"
    pause(stage, "B2_code")  # new markup
    await until_reads(row(page, "B2_code"), text="Paused")
    pause(stage, "B1_chat")  # new markup of a row that is hidden
    await page.locator("#rows tr[data-name=B1_chat][data-kind=pause]").wait_for(state="attached")
    assert await names(page) == ["B2_code"]
    assert "q=co" in (await page.locator(".ranges a").last.get_attribute("href") or "")
    await page.reload()
    assert await names(page) == ["B2_code"]
    await expect(page.locator("#f-q")).to_have_value("co")
    await page.locator("#f-q").fill("foo")
    await until_reads(page.locator("#no-rows"), text="No partition matches “foo”")
    await page.get_by_role("link", name="Show all").click()
    assert await names(page) == ["B1_chat", "B2_code", "B3_tools"]
    assert page.url == stage.run_address


async def test_a_row_does_not_vanish_under_the_hand_that_moved_it_out_of_its_group(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(f"{stage.run_address}?state=running")
    await until_moved(page)
    await page.keyboard.press("j")
    await page.keyboard.press("p")
    await until_reads(row(page, "B1_chat"), text="Paused")
    await until_moved(page, 2)
    assert "B1_chat" in await names(page)
    await page.locator("#f-q").focus()
    await until_names(page, "B2_code", "B3_tools")


async def test_an_order_of_the_address_holds_and_a_range_keeps_the_rest(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(f"{stage.run_address}?sort=speed&state=running")
    assert await names(page) == ["B3_tools", "B2_code", "B1_chat"]
    await until_moved(page, 2)
    assert await names(page) == ["B3_tools", "B2_code", "B1_chat"]
    await page.get_by_role("link", name="1 h", exact=True).click()
    await page.wait_for_url(f"{stage.run_address}?range=1h&state=running&sort=speed")
    assert await names(page) == ["B3_tools", "B2_code", "B1_chat"]
    await page.locator("#f-sort").select_option("name")
    await until_names(page, "B1_chat", "B2_code", "B3_tools")
    assert "sort=name" in page.url


async def test_without_script_the_form_filters_and_sorts(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address, java_script_enabled=False)
    await page.locator("#f-q").fill("B")
    await page.locator("#f-sort").select_option("speed")
    await page.get_by_role("button", name="Show").click()
    assert await names(page) == ["B3_tools", "B2_code", "B1_chat"]
    await page.locator("#f-q").fill("<b>")
    await page.get_by_role("button", name="Show").click()
    await page.get_by_text("No partition matches “<b>”.").wait_for()
    await page.get_by_role("link", name="Show all").click()
    assert await names(page) == ["B1_chat", "B2_code", "B3_tools"]


@CDN_MODES
async def test_rows_do_not_move_while_somebody_is_at_them(
    stage: Stage, tabs: Tabs, cdn: str
) -> None:
    page = await tabs.open(stage.run_address, cdn)
    await until_moved(page)
    await row(page, "B2_code").hover()
    stage.door.failing = ("B3_tools",)
    again = page.get_by_role("button", name="1 row moved, re-sort")
    await again.wait_for()
    await until_reads(row(page, "B3_tools"), text="Failing 31 %")
    assert await names(page) == ["B1_chat", "B2_code", "B3_tools"]
    stage.door.failing = ("B3_tools", "B2_code")
    await until_reads(row(page, "B2_code"), text="Failing 31 %")
    await until_moved(page, 2)
    await page.keyboard.press("j")  # the focus holds them when the pointer goes to the button
    again = page.get_by_role("button", name="moved, re-sort")
    await again.click()
    await until_names(page, "B2_code", "B3_tools", "B1_chat")
    await expect(page.locator("#resort")).to_be_hidden()


async def test_rows_move_when_nobody_is_at_them(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await page.mouse.move(5, 5)
    await until_moved(page)
    stage.door.failing = ("B3_tools",)
    await until_names(page, "B3_tools", "B1_chat", "B2_code")


@CDN_MODES
async def test_new_markup_waits_until_selected_text_is_let_go(
    stage: Stage, tabs: Tabs, cdn: str
) -> None:
    page = await tabs.open(stage.run_address, cdn)
    await until_moved(page)
    await page.evaluate(
        "getSelection().selectAllChildren(document.querySelector('#rows tr:nth-child(2) .name'))"
    )
    pause(stage, "B2_code")
    other = page.locator("#rows tr:nth-child(1) td[data-l='tok/s'] span")
    for _ in range(3):
        await until_moved(page)
    assert await page.evaluate("String(getSelection())") == "B2_code"
    assert "Paused" not in await row(page, "B2_code").inner_text()
    assert await other.count() == 1
    await page.evaluate("getSelection().removeAllRanges()")
    await until_reads(row(page, "B2_code"), text="Paused")


async def test_the_icon_changes_its_shape_when_something_needs_a_person(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    await until_moved(page)
    icon = page.locator("#icon")
    assert "/icon." in (await icon.get_attribute("href") or "")
    stage.door.failing = ("B1_chat",)
    await page.wait_for_function("() => document.title.startsWith('(!1)')")
    await expect(icon).to_have_attribute("href", await icon.get_attribute("data-alert") or "")
    await page.reload()
    assert "/icon-alert." in (await icon.get_attribute("href") or "")
    stage.door.failing = ()
    await expect(icon).to_have_attribute("href", await icon.get_attribute("data-calm") or "")
