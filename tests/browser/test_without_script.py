"""A page without script: every form of the overview posts, and comes back to the page."""

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from app.core.states import PartitionState, RunState
from tests.browser.conftest import Tabs
from tests.browser.looking import own_concurrency, row, until_moved
from tests.browser.stage import Stage, set_concurrency
from tests.browser.test_accessible import RULES

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def press(page: Page, name: str, within: str = "") -> None:
    """Press a button and be led back to a page of the service."""
    place = row(page, within) if within else page.locator("#main")
    async with page.expect_navigation():
        await place.get_by_role("button", name=name, exact=True).click()


async def test_every_control_of_the_overview_works(stage: Stage, tabs: Tabs) -> None:
    set_concurrency(stage, "B1_chat", 64)
    page = await tabs.open(stage.run_address, java_script_enabled=False)
    await page.locator("noscript p.notice").wait_for()
    for unusable in ("Freeze", "Theme", "Keys ?", "Keys and messages"):
        await expect(page.get_by_role("button", name=unusable)).to_have_count(0)

    def state() -> PartitionState:
        return stage.home.partition("B1_chat").state

    def run_state() -> RunState:
        return stage.home.run.state

    await press(page, "More concurrency for B1_chat", "B1_chat")
    await press(page, "Less concurrency for B1_chat", "B1_chat")
    await press(page, "Less concurrency for B1_chat", "B1_chat")
    assert own_concurrency(stage, "B1_chat") == 60
    field = row(page, "B1_chat").locator("input[name=requests]")
    await field.fill("31")
    async with page.expect_navigation():
        await field.press("Enter")
    assert own_concurrency(stage, "B1_chat") == 31
    await press(page, "Give B1_chat its share of the class again", "B1_chat")
    assert own_concurrency(stage, "B1_chat") is None
    await press(page, "Pause B1_chat", "B1_chat")
    assert state() is PartitionState.PAUSED
    await press(page, "Resume B1_chat", "B1_chat")
    assert state() is PartitionState.ACTIVE
    await press(page, "Drain B1_chat", "B1_chat")
    assert state() is PartitionState.DRAINING
    await row(page, "B2_code").locator("summary").click()
    await page.get_by_role("textbox", name="Goal of B2_code").fill("5")
    await press(page, "Set the goal of B2_code", "B2_code")
    assert stage.home.partition("B2_code").goal_samples == 5
    await press(page, "Pause all")
    assert run_state() is RunState.PAUSED
    async with page.expect_navigation():
        await page.locator(".verdict").get_by_role("button", name="Resume").first.click()
    assert run_state() is RunState.RUNNING
    await page.get_by_text("Stop run…").click()
    await page.wait_for_url("**/stop")
    await press(page, "Save and stop")
    assert run_state() in (RunState.STOPPING, RunState.STOPPED)


@pytest.mark.parametrize("width", [1280, 390, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_help_and_an_empty_filter_are_clean(
    stage: Stage, tabs: Tabs, scheme: str, width: int
) -> None:
    page = await tabs.open(
        f"{stage.run_address}?q=foo&state=over",
        "refused",
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
        has_touch=width < 1280,
    )
    await page.locator("#basic:not([hidden])").wait_for()
    found = await Axe().run(page, options={"runOnly": RULES})
    assert found.violations_count == 0, found.generate_report()
    await page.get_by_role("button", name="Keys and messages").click()
    found = await Axe().run(page, options={"runOnly": RULES})
    assert found.violations_count == 0, found.generate_report()
    await page.keyboard.press("Escape")
    await page.get_by_role("link", name="Show all").click()
    await until_moved(page)
    sizes = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    wide, seen = await page.evaluate(sizes)
    assert wide <= seen
