"""The chart in a browser, read by keys and pointer through frames; and a partition's page."""

import re
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from app.core.series import Chart
from app.core.types import PartitionId, RunId
from tests.browser.conftest import Tabs
from tests.browser.looking import until_moved
from tests.browser.stage import MovingDoor, Stage, set_concurrency
from tests.browser.test_accessible import RULES

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]
OUT, BOX = "#ch-out", "#ch-box"
DRAWN_ANEW = "() => document.querySelector('#ch-box').dataset.begin !== window.begun"


@dataclass
class Charting(MovingDoor):
    """A service with a chart of a slope: each piece has a figure of its own."""

    def chart(
        self,
        run_id: RunId,
        span_s: float | None,
        n_buckets: int,
        partition_id: PartitionId | None = None,
    ) -> Chart:
        made = super().chart(run_id, span_s, n_buckets, partition_id)
        slope = tuple(1_000.0 + 10 * n for n in range(n_buckets - 1))
        half = n_buckets // 2
        middle = made.begin + (made.end - made.begin) / 2
        return replace(
            made,
            own_tokens_per_s=(*slope, None),
            server_tokens_per_s=(2_000.0,) * n_buckets,
            concurrency_requests=(64.0,) * half + (96.0,) * (n_buckets - half),
            aways=((middle, middle + timedelta(seconds=60)),),
        )


@pytest.fixture
def charting(stage: Stage) -> Stage:
    """Let the stage's pages, which ask its door anew, have a chart worth reading."""
    door = stage.door
    door.chart = Charting(stage.home).chart  # type: ignore[method-assign]  # the same service
    return stage


def partition_address(stage: Stage, name: str = "B1_chat") -> str:
    return f"{stage.run_address}/p/{name}"


async def until_drawn_anew(page: Page) -> None:
    await page.evaluate("window.begun = document.querySelector('#ch-box').dataset.begin")
    await page.wait_for_function(DRAWN_ANEW, timeout=40_000)


@pytest.mark.parametrize("cdn", ["ok", "refused"])
async def test_the_chart_is_read_by_keys_through_frames(
    charting: Stage, tabs: Tabs, cdn: str
) -> None:
    page = await tabs.open(charting.run_address, cdn)
    out = page.locator(OUT)
    await expect(out).to_contain_text(
        re.compile(r"newest \d+ s: 2\.58k tok/s, server 2k, concurrency 96")
    )
    await page.locator(BOX).focus()
    await page.keyboard.press("Home")
    await expect(out).to_contain_text(": 1k tok/s, server 2k, concurrency 64")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("PageUp")
    await expect(out).to_contain_text(": 1.12k tok/s")
    await until_moved(page, 3)
    await expect(out).to_contain_text(": 1.12k tok/s")
    assert await page.locator(BOX).get_attribute("aria-valuetext") == await out.text_content()
    await page.keyboard.press("End")
    await expect(out).to_contain_text("nothing recorded, server 2k, concurrency 96")
    assert await page.evaluate("document.activeElement.id") == "ch-box"
    await page.keyboard.press("Escape")
    await expect(out).to_contain_text(re.compile(r"newest \d+ s: "))


async def test_a_moment_that_is_read_stays_the_same_when_the_chart_moves_on(
    charting: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(charting.run_address)
    await page.locator(BOX).focus()
    for key in ("End", "PageDown"):
        await page.keyboard.press(key)
    place, second = await read_at(page)
    await until_drawn_anew(page)
    later_place, later_second = await read_at(page)
    assert later_place < place
    assert abs(later_second - second) % 86_400 <= 6  # the piece that holds the moment


async def read_at(page: Page) -> tuple[int, int]:
    """Return which piece is read, and its second of the day as it is said."""
    said = await page.locator(OUT).text_content() or ""
    found = re.match(r"(\d\d):(\d\d):(\d\d): ", said)
    assert found, said
    hours, minutes, seconds = map(int, found.groups())
    place = await page.locator(BOX).get_attribute("aria-valuenow")
    return int(place or 0), 3_600 * hours + 60 * minutes + seconds


async def test_the_pointer_reads_and_leaves(charting: Stage, tabs: Tabs) -> None:
    page = await tabs.open(charting.run_address)
    box = page.locator(BOX)
    await box.hover(position={"x": 1, "y": 90})
    await expect(page.locator(OUT)).to_contain_text(": 1k tok/s")
    await page.locator("#h-parts").hover()
    await expect(page.locator(OUT)).to_contain_text(re.compile(r"newest \d+ s: "))


async def test_ranges_and_the_table_are_links_that_work_without_script(
    charting: Stage, tabs: Tabs
) -> None:
    address = partition_address(charting)
    page = await tabs.open(address, java_script_enabled=False)
    await page.get_by_role("link", name="6 h").click()
    assert page.url.startswith(f"{address}?range=6h")
    assert await page.locator(".ranges [aria-current]").text_content() == "6 h"
    await page.locator("#chart").get_by_role("link", name="as table").click()
    await expect(page.get_by_role("heading", name="B1_chat")).to_be_visible()
    await expect(page.locator("tbody tr").first).to_contain_text("96")


async def test_a_change_of_concurrency_is_a_mark_that_leads_to_its_entry(
    charting: Stage, tabs: Tabs
) -> None:
    set_concurrency(charting, "B1_chat", 48)
    set_concurrency(charting, "B2_code", 9)
    page = await tabs.open(partition_address(charting))
    mark = page.locator(".marks a")
    await expect(mark).to_have_count(1)
    await expect(mark).to_contain_text("B1_chat: concurrency")
    assert re.search(r"/activity#e\d+$", await mark.get_attribute("href") or "")


async def test_the_partitions_own_controls_work_on_its_page(charting: Stage, tabs: Tabs) -> None:
    page = await tabs.open(partition_address(charting))
    await page.get_by_role("button", name="Pause B1_chat").click()
    await expect(page.get_by_role("button", name="Resume B1_chat")).to_be_visible()
    await expect(page.locator("#pp-state")).to_contain_text("Paus")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_on_the_partition_page(
    charting: Stage, tabs: Tabs, scheme: str, width: int
) -> None:
    charting.home.keep("B1_chat", 3)
    charting.home.fail("B1_chat", 1)
    set_concurrency(charting, "B1_chat", 48)
    viewport = {"width": width, "height": 900}
    page = await tabs.open(partition_address(charting), color_scheme=scheme, viewport=viewport)
    await page.locator("#pp-speed").wait_for()
    table = f"{charting.run_address}/chart?partition=B1_chat"
    for address in (partition_address(charting), table):
        await page.goto(address)
        found = await Axe().run(page, options={"runOnly": RULES})
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"


async def test_the_partition_page_does_not_scroll_sideways_at_320(
    charting: Stage, tabs: Tabs
) -> None:
    charting.home.keep("B1_chat", 3)
    set_concurrency(charting, "B1_chat", 48)
    viewport = {"width": 320, "height": 800}
    page = await tabs.open(partition_address(charting), viewport=viewport)
    sizes = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    wide, shown = await page.evaluate(sizes)
    assert wide <= shown
