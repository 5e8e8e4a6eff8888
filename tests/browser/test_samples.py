"""Samples and failures in a browser: hostile texts, a retry by one press or without script."""

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from app.core.reasons import group_of
from app.core.states import SampleState
from tests.browser.conftest import Tabs
from tests.browser.stage import Stage
from tests.browser.test_accessible import RULES
from tests.web.answered import HOSTILE, Said, answer, write_prompts

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]
PAGES = ("/samples", "/samples?q=%3Cimg", "/samples/1", "/failures", "/failures/retry")


def fill(stage: Stage) -> None:
    home = stage.home
    write_prompts(home, "B1_chat", [{"id": HOSTILE, "text": HOSTILE}])
    answer(home, "B1_chat", [Said(text=f"{HOSTILE}</think>{HOSTILE}", continued_at=2)])
    home.fail("B1_chat", 2, reason=HOSTILE)
    home.fail("B2_code", 2, reason="the server answered 500: request 12 failed")
    home.fail("B3_tools", 1, reason="the server answered 500: request 13 failed")


async def test_hostile_texts_are_shown_and_never_run_sec_01(stage: Stage, tabs: Tabs) -> None:
    fill(stage)
    asked: list[str] = []
    context = await tabs.context()
    page = await tabs.page(context)
    page.on("request", lambda request: asked.append(request.url))

    for address in PAGES:
        await page.goto(stage.run_address + address)
        await page.locator("html[data-htmx=on]").wait_for()
        seen = await page.locator("#main").inner_text()
        assert "<img src=x onerror=window.__hit=1>" in seen
        assert "</script>49" not in seen
        assert await page.evaluate("typeof window.__hit") == "undefined"
    whole = await page.locator("#main").inner_text()
    assert HOSTILE in " ".join(whole.split())
    assert not [url for url in asked if "203.0.113.9" in url]


async def test_one_press_retries_a_group_and_the_page_follows(stage: Stage, tabs: Tabs) -> None:
    fill(stage)
    key = group_of(SampleState.FAILED, "the server answered 500: request 9 failed")
    page = await tabs.open(f"{stage.run_address}/failures")

    await page.locator(f"#g{key} button").click()

    await expect(page.locator(".toast")).to_contain_text("3 samples pending again")
    await expect(page.locator(f"#g{key}")).to_have_count(0)
    await expect(page.locator("#fail-n")).to_have_text("2 failed: 1 reason")
    assert stage.home.partition("B2_code").counts.failed == 0
    assert stage.home.partition("B1_chat").counts.failed == 2


async def test_without_script_a_retry_asks_and_then_is_done(stage: Stage, tabs: Tabs) -> None:
    fill(stage)
    page = await tabs.open(f"{stage.run_address}/failures", java_script_enabled=False)

    await page.get_by_role("button", name="Retry all 5").click()
    await expect(page.locator("#h-asking")).to_have_text("Try 5 samples again?")
    assert stage.home.partition("B1_chat").counts.failed == 2
    await page.get_by_role("button", name="Retry all 5").click()

    await expect(page.locator("#fail-groups")).to_contain_text("Nothing has failed.")
    assert stage.home.partition("B1_chat").counts.failed == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
async def test_the_pages_are_accessible_and_fit(
    stage: Stage, tabs: Tabs, scheme: str, width: int
) -> None:
    fill(stage)
    context = await tabs.context(color_scheme=scheme, viewport={"width": width, "height": 800})
    page = await tabs.page(context)
    for address in PAGES:
        await page.goto(stage.run_address + address)
        found = await Axe().run(page, options={"runOnly": RULES})
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"
        over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(over) <= 0, address
