"""Activity, server, runs, compare in a browser; and who may only look."""

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from app.ledger import activity
from app.ledger.activity import Deed
from tests.browser.conftest import Tabs
from tests.browser.stage import Stage, pause
from tests.browser.test_accessible import RULES

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]
TOKEN = "token of a test"  # noqa: S105 - the stage's
VIEW_TOKEN = "a-key-to-look-through"  # noqa: S105 - opens nothing


def pages(stage: Stage) -> tuple[str, ...]:
    run = stage.run_address
    other = stage.home.add_run("day")
    return (
        f"{run}/activity",
        f"{run}/activity?who=Nobody",
        f"{run}/server",
        stage.address,
        f"{stage.address}/compare",
        f"{stage.address}/compare?a={stage.home.run_id}&b={other}",
    )


def note(stage: Stage, n: int) -> None:
    now = stage.home.clock.now()
    deeds = [
        (Deed(who="Ada (page)", event="tick", detail=f"number {k}", run_id=stage.home.run_id), now)
        for k in range(n)
    ]
    activity.add_all(stage.home.ledger, deeds)


async def log_in(page: Page, stage: Stage, token: str) -> None:
    await page.goto(f"{stage.address}/login?next=/runs/{stage.home.run_id}")
    await page.get_by_label("Token").fill(token)
    await page.get_by_label("Your name").fill("Vera")
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(f"{stage.run_address}*")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(stage: Stage, tabs: Tabs, scheme: str, width: int) -> None:
    note(stage, 3)
    viewport = {"width": width, "height": 900}
    page = await tabs.open(stage.address, color_scheme=scheme, viewport=viewport)
    for address in pages(stage):
        await page.goto(address)
        found = await Axe().run(page, options={"runOnly": RULES})
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"


async def test_nothing_scrolls_sideways_at_320(stage: Stage, tabs: Tabs) -> None:
    note(stage, 3)
    page = await tabs.open(stage.address, viewport={"width": 320, "height": 800})
    for address in pages(stage):
        await page.goto(address)
        sizes = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        wide, seen = await page.evaluate(sizes)
        assert wide <= seen, address


async def test_a_new_entry_comes_by_itself_and_an_address_marks_one(
    stage: Stage, tabs: Tabs
) -> None:
    note(stage, 30)
    page = await tabs.open(f"{stage.run_address}/activity")
    pause(stage, "B2_code")
    first = page.locator(".log li").first
    await expect(first).to_contain_text("active → paused")
    await first.locator("a.when").click()
    await page.wait_for_url(re.compile(r"\?at=\d+#e\d+$"))
    target = page.locator(".log li:target")
    await expect(target).to_contain_text("active → paused")
    style = "one => getComputedStyle(one).outlineStyle"
    assert await target.evaluate(style) == "solid"
    assert await page.locator(".log li").nth(1).evaluate(style) == "none"


async def test_without_script_lists_are_filtered_and_runs_compared(
    stage: Stage, tabs: Tabs
) -> None:
    note(stage, 2)
    pause(stage, "B2_code")
    page = await tabs.open(f"{stage.run_address}/activity", java_script_enabled=False)
    await page.get_by_label("Partition").select_option("B2_code")
    await page.get_by_role("button", name="Show").click()
    assert await page.locator(".log li").count() == 1
    await page.get_by_role("link", name="Show all").click()
    assert await page.locator(".log li").count() == 4  # the run's beginning too
    stage.home.add_run("day")
    await page.goto(stage.address)
    await page.get_by_role("button", name="Compare").click()
    await expect(page.get_by_role("heading", name="Settings: all the same")).to_be_visible()


async def test_who_may_only_look_sees_no_control_and_the_gate_refuses(
    stage: Stage, tabs: Tabs
) -> None:
    stage.keys.renew(TOKEN, VIEW_TOKEN)
    page = await tabs.open(stage.address)
    await log_in(page, stage, VIEW_TOKEN)
    await expect(page.locator("footer")).to_contain_text("Vera (page) · looking only")
    for address in (stage.run_address, stage.address, f"{stage.run_address}/stop"):
        await page.goto(address)
        posts = page.locator("form[method=post]:not([action='/logout'])")
        assert await posts.locator("visible=true").count() == 0
        assert await page.locator("a[href='/new']").locator("visible=true").count() == 0
    said = await page.evaluate(
        "async url => { const answer = await fetch(url, {method: 'POST'});"
        " return [answer.status, (await answer.json()).error.message]; }",
        f"{stage.run_address}/pause",
    )
    assert said == [403, "this key may only look; nothing was changed"]
    assert str(stage.home.run.state) == "running"
    await page.get_by_role("button", name="Log out").click()
    await page.wait_for_url("**/login")


async def test_a_new_token_shows_open_pages_out(stage: Stage, tabs: Tabs) -> None:
    stage.keys.renew(TOKEN, VIEW_TOKEN)
    stage.keys.is_open_to_own_user = False
    page = await tabs.page(await tabs.context())  # the login page has no htmx to wait for
    await log_in(page, stage, TOKEN)
    await expect(page.locator("#l-page b")).to_have_text("live")
    stage.keys.renew("another token of a test", VIEW_TOKEN)
    await page.wait_for_url("**/login**")
