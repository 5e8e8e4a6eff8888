"""The pages of a new run in a browser: with and without script, for axe, on a phone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from app.simulator.server import SimulatorThread
from tests.browser.conftest import Tabs
from tests.browser.stage import Stage
from tests.browser.test_accessible import RULES
from tests.web.new_run.desk import PromptDesk, chat

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@pytest.fixture
def desk(stage: Stage, tmp_path: Path) -> Iterator[PromptDesk]:
    with SimulatorThread(port=0, instant=True) as simulator:
        desk = PromptDesk(stage.home, tmp_path, simulator.url)
        stage.door.settings = desk.door.settings
        rows = [chat(f"a{n}", "word " * n) for n in range(1, 60)]
        desk.write("night/B1_chat/prompts.jsonl", [*rows, '{"id": "torn'])
        desk.write("night/B2_code.jsonl", rows)
        yield desk


async def to_the_form(page: Page, desk: PromptDesk) -> None:
    await page.get_by_role("link", name=str(desk.prompts / "night")).click()
    await expect(page.get_by_label("Output folder")).to_have_value(str(desk.answers / "night-2"))
    await expect(page.get_by_label(desk.server_url)).to_be_checked()


@pytest.mark.parametrize("has_script", [True, False])
async def test_a_run_is_begun_with_a_few_clicks(
    stage: Stage, desk: PromptDesk, tabs: Tabs, has_script: bool
) -> None:
    page = await tabs.open(f"{stage.address}/new", java_script_enabled=has_script)
    await to_the_form(page, desk)
    await page.get_by_label("Short: concurrency").fill("many")
    await page.get_by_label("Token budget of B2_code").fill("2M")
    await page.get_by_role("button", name="Check").click()
    await expect(page.get_by_label("Short: concurrency")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("Token budget of B2_code")).to_have_value("2M")

    await page.get_by_label("Short: concurrency").fill("8")
    await page.get_by_role("button", name="Check").click()
    # on its own: the stream brings it, or the page asks again
    await expect(
        page.locator("#review").get_by_text("Ready to start: 2 partitions, 118 prompts")
    ).to_be_visible()
    await expect(page.get_by_text("1 line of prompts.jsonl rejected")).to_be_visible()
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.wait_for_url("**/runs/*")
    ((spec, *_),) = stage.door.submitted
    assert spec.partitions["B2_code"].token_budget_tokens == 2_000_000


async def test_a_start_at_work_puts_no_refresh_into_a_page_that_has_a_script(
    stage: Stage, desk: PromptDesk, tabs: Tabs
) -> None:
    """It would reload the page two seconds later, and break off the form that was sent from it."""
    page = await tabs.open(f"{stage.address}/new")
    may_end = stage.door.held_starts = asyncio.Event()
    await to_the_form(page, desk)
    await page.get_by_role("button", name="Check").click()
    review = page.locator("#review")
    await expect(review.get_by_role("button", name="Start", exact=True)).to_be_visible()
    await page.evaluate("void fetch(location.pathname + '/start', { method: 'POST' })")
    await expect(review.get_by_text("Starting:")).to_be_visible()
    assert await page.locator("meta[http-equiv=refresh]").count() == 0
    may_end.set()
    await expect(review.get_by_role("link", name="Open run")).to_be_visible()
    assert len(stage.door.submitted) == 1


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_and_nothing_scrolls_aside(
    stage: Stage, desk: PromptDesk, tabs: Tabs, scheme: str, width: int
) -> None:
    viewport = {"width": width, "height": 900}
    page = await tabs.open(f"{stage.address}/new", color_scheme=scheme, viewport=viewport)

    async def look() -> None:
        await page.wait_for_load_state("load")
        found = await Axe().run(page, options={"runOnly": RULES})
        assert found.violations_count == 0, f"{page.url}: {found.generate_report()}"
        await page.set_viewport_size({"width": 320, "height": 900})
        sizes = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        wide, seen = await page.evaluate(sizes)
        assert wide <= seen, page.url
        await page.set_viewport_size({"width": width, "height": 900})

    await look()
    await to_the_form(page, desk)
    await look()
    await page.get_by_label("Short: concurrency").fill("many")
    await page.get_by_label("Token budget of B2_code").fill("lots")
    await page.get_by_role("button", name="Check").click()
    await look()
    await page.get_by_label("Short: concurrency").fill("8")
    await page.get_by_label("Token budget of B2_code").fill("")
    await page.get_by_role("button", name="Check").click()
    await expect(page.locator("#review").get_by_text("Ready to start")).to_be_visible()
    await look()
    await page.get_by_role("link", name="Change as spec").click()
    await page.get_by_label("Spec (TOML)").fill("[run]\ncolour = 7\n")
    await page.get_by_role("button", name="Check").click()
    await look()
