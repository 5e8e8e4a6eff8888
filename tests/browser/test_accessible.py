"""What axe finds on the pages, in both themes, wide and narrow: nothing. Nothing scrolls aside."""

import pytest
from axe_playwright_python.async_playwright import Axe

from tests.browser.conftest import Tabs
from tests.browser.looking import until_moved
from tests.browser.stage import Stage

pytestmark = pytest.mark.asyncio(loop_scope="session")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(stage: Stage, tabs: Tabs, scheme: str, width: int) -> None:
    viewport = {"width": width, "height": 900}
    page = await tabs.open(stage.run_address, color_scheme=scheme, viewport=viewport)
    await until_moved(page)
    for address in (stage.run_address, stage.address, f"{stage.run_address}/stop"):
        await page.goto(address)
        found = await Axe().run(page, options={"runOnly": RULES})
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"


async def test_nothing_scrolls_sideways_at_320(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address, viewport={"width": 320, "height": 800})
    await until_moved(page)
    sizes = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    wide, seen = await page.evaluate(sizes)
    assert wide <= seen
