"""The panel of rarer orders: open and half-typed it outlives frames, until closed or ordered."""

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Locator, Page, expect

from app.api.schemas import BudgetOrder, GoalOrder
from tests.browser.conftest import Tabs
from tests.browser.looking import row, until_moved, until_reads
from tests.browser.stage import Stage, order, pause
from tests.browser.test_accessible import RULES
from tests.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")
CDN_MODES = pytest.mark.parametrize("cdn", ["ok", "refused"])


def more(page: Page, name: str) -> Locator:
    return row(page, name).locator("details.more")


async def open_more(page: Page, name: str) -> Locator:
    await more(page, name).locator("summary").click()
    panel = row(page, name).locator("details.more[open]")
    await panel.wait_for()
    return panel


def budget_of(stage: Stage, name: str) -> int | None:
    return stage.home.partition(name).token_budget


@CDN_MODES
async def test_a_half_typed_budget_outlives_frames_and_new_rows_and_is_set_by_enter(
    stage: Stage, tabs: Tabs, cdn: str
) -> None:
    page = await tabs.open(stage.run_address, cdn)
    await until_moved(page)
    panel = await open_more(page, "B2_code")
    await panel.get_by_role("textbox", name="Goal of B2_code").fill("5")
    budget = panel.get_by_role("textbox", name="Budget of B2_code")
    await budget.fill("12")
    await until_moved(page, 3)
    pause(stage, "B2_code")  # the row is sent anew, and goes to another place
    await until_reads(row(page, "B2_code"), text="Paused")
    order(stage, GoalOrder(partition="B2_code", samples=9))  # and once more, with another default
    await page.locator("#rows input[name=samples][value='9']").wait_for(state="attached")
    await until_moved(page, 2)
    await expect(panel).to_have_count(1)
    await expect(budget).to_be_focused()
    await expect(budget).to_have_value("12")
    await expect(panel.get_by_role("textbox", name="Goal of B2_code")).to_have_value("5")
    assert not stage.ward.posts()
    await page.keyboard.type("M")
    await page.keyboard.press("Enter")
    await wait_until(lambda: budget_of(stage, "B2_code") == 12_000_000, "the budget")
    await expect(panel).to_have_count(0)
    assert [each.body for each in stage.ward.posts()] == [{"expect": "none", "tokens": "12M"}]
    assert stage.home.partition("B2_code").goal_samples == 9


@CDN_MODES
async def test_escape_closes_the_panel_and_the_next_one_shows_what_holds(
    stage: Stage, tabs: Tabs, cdn: str
) -> None:
    order(stage, BudgetOrder(partition="B1_chat", tokens=10_000_000))
    page = await tabs.open(stage.run_address, cdn)
    panel = await open_more(page, "B1_chat")
    budget = panel.get_by_role("textbox", name="Budget of B1_chat")
    await expect(budget).to_have_value("10M")
    await budget.fill("77")
    await page.keyboard.press("Escape")
    await expect(panel).to_have_count(0)
    await expect(more(page, "B1_chat").locator("summary")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(budget).to_have_value("10M")
    await open_more(page, "B2_code")
    await expect(page.locator("details.more[open]")).to_have_count(1)
    assert not stage.ward.posts()


async def test_an_order_says_what_it_did_and_gives_the_focus_back(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    panel = await open_more(page, "B1_chat")
    await panel.get_by_role("textbox", name="Budget of B1_chat").fill("a lot")
    await page.keyboard.press("Enter")
    await until_reads(page.locator("#toast"), text='budget "a lot" is not a number of tokens')
    await expect(panel.get_by_role("textbox", name="Budget of B1_chat")).to_have_value("a lot")
    await panel.get_by_role("textbox", name="Budget of B1_chat").fill("750k")
    await page.keyboard.press("Enter")
    await until_reads(page.locator("#toast"), text="B1_chat: budget none → 750k")
    await expect(panel).to_have_count(0)
    await expect(more(page, "B1_chat").locator("summary")).to_be_focused()
    await page.locator("#toast").get_by_role("button", name="Undo").click()
    await wait_until(lambda: budget_of(stage, "B1_chat") is None, "the undo")


async def test_without_script_the_panel_opens_and_orders(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address, java_script_enabled=False)
    await page.locator("#verdict-more summary").click()
    await page.get_by_role("textbox", name="Budget of the run").fill("2.5G")
    await page.get_by_role("button", name="Set the budget of the run").click()
    await page.locator("#verdict-budget[value='2.5G']").wait_for(state="attached")
    assert stage.home.run.token_budget == 2_500_000_000


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_open_panels_are_clean_and_move_nothing_aside(
    stage: Stage, tabs: Tabs, scheme: str, width: int
) -> None:
    viewport = {"width": width, "height": 900}
    is_phone = width < 1280
    page = await tabs.open(
        stage.run_address,
        color_scheme=scheme,
        viewport=viewport,
        has_touch=is_phone,
        is_mobile=is_phone,
    )
    await until_moved(page)
    tall = "document.querySelector('table.cards').offsetHeight"
    before = await page.evaluate(tall)
    for panel in ("#verdict-more", "#rows tr:nth-child(3) details.more"):
        await page.locator(f"{panel} summary").click()
        await page.locator(f"{panel}[open]").wait_for()
        found = await Axe().run(page, options={"runOnly": RULES})
        assert found.violations_count == 0, found.generate_report()
        box = await page.locator(f"{panel} .orders").bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        small = await page.locator(f"{panel} summary").bounding_box()
        assert small
        assert min(small["width"], small["height"]) >= (44 if is_phone else 24)
    assert await page.evaluate(tall) == before
    sizes = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    wide, seen = await page.evaluate(sizes)
    assert wide <= seen
