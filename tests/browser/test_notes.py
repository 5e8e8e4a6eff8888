"""Messages of the browser: only when asked for, one per condition, also of a tab that is hidden."""

import asyncio

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Tabs
from tests.browser.looking import until_moved, until_reads
from tests.browser.stage import Stage
from tests.browser.test_connection import HIDE
from tests.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]
# the browser's own class still makes the message; what it was made of can be read back
LISTEN = """() => {
  window.made = [];
  window.Notification = class extends Notification {
    constructor(title, options) { super(title, options); window.made.push([title, options.body]); }
  };
}"""

# a way there and back: what was asked before it has arrived
SETTLE = "fetch('/healthz').then(answer => answer.text())"


async def opted_in(stage: Stage, tabs: Tabs) -> Page:
    context = await tabs.context()
    await context.grant_permissions(["notifications"])
    page = await tabs.page(context)
    await page.add_init_script(f"({LISTEN})()")
    await page.clock.install()
    await page.goto(stage.run_address, wait_until="domcontentloaded")
    await page.locator("html[data-htmx=on]").wait_for()
    await page.keyboard.press("?")
    switch = page.get_by_role("button", name="Notify me when something needs a person")
    await switch.click()
    await expect(switch).to_have_attribute("aria-pressed", "true")
    await page.keyboard.press("Escape")
    return page


async def test_a_hidden_tab_tells_once_of_each_condition_and_asks_once_a_minute(
    stage: Stage, tabs: Tabs
) -> None:
    page = await opted_in(stage, tabs)
    await until_moved(page)
    await page.evaluate(HIDE, True)
    await page.clock.fast_forward(10_000)
    await wait_until(lambda: stage.site.live.n_pages == 0, "the stream to be given up")
    stage.door.failing = ("B2_code",)
    hidden_s = asyncio.get_running_loop().time()
    await page.clock.fast_forward(51_000)
    await page.wait_for_function("() => window.made.length === 1")
    n_minutes = await ask_again(page, stage, hidden_s) + await ask_again(page, stage, hidden_s)
    stage.door.failing = ("B2_code", "B1_chat")
    await wait_until(lambda: stage.site.live.n_pages == 0 or _is_new(stage), "the look")
    n_minutes += await ask_again(page, stage, hidden_s)
    await page.wait_for_function("() => window.made.length === 2")
    made = await page.evaluate("window.made")
    assert [body.split(":")[0] for _, body in made] == ["B2_code", "B1_chat"]
    assert all(title.endswith("needs you") for title, _ in made)
    assert len(frames(stage, hidden_s)) == 4
    assert n_minutes >= 3, "no more than once a minute"
    others = [each for each in stage.ward.since(hidden_s) if not each.endswith("/frame")]
    assert all(each == "/healthz" or "icon" in each for each in others)


async def ask_again(page: Page, stage: Stage, since_s: float) -> int:
    """Let minutes go by until the page has asked once more; return how many."""
    n = len(frames(stage, since_s))
    for n_minutes in range(1, 6):
        await page.evaluate(SETTLE)
        await page.clock.fast_forward(60_000)
        await page.evaluate(SETTLE)
        if len(frames(stage, since_s)) > n:
            return n_minutes
    raise AssertionError("the page did not ask again")


def frames(stage: Stage, since_s: float) -> list[str]:
    return [each for each in stage.ward.since(since_s) if each.endswith("/frame")]


def _is_new(stage: Stage) -> bool:
    """Whether the page that is kept for who asks has seen what fails now."""
    (page,) = stage.site.live._pages.values()
    return page.differ._sheet.title.startswith(f"(!{len(stage.door.failing)})")


async def test_who_looks_at_the_page_is_told_by_the_page_alone(stage: Stage, tabs: Tabs) -> None:
    page = await opted_in(stage, tabs)
    stage.door.failing = ("B2_code",)
    await page.wait_for_function("() => document.title.startsWith('(!1)')")
    await until_moved(page, 2)
    assert await page.evaluate("window.made") == []


async def test_without_a_secure_address_it_says_why_not(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.page(await tabs.context())
    await page.add_init_script("Object.defineProperty(window, 'isSecureContext', {value: false})")
    await page.goto(stage.run_address)
    await page.keyboard.press("?")
    switch = page.get_by_role("button", name="Notify me when something needs a person")
    await expect(switch).to_be_disabled()
    await until_reads(page.locator("#notify-why"), text="only over HTTPS or on localhost")
