"""Every state that a page can show, in a browser: axe, narrow screens, and hostile words."""

import pytest
from axe_playwright_python.async_playwright import Axe

from app.settings import Settings
from app.web.gallery import ENTRIES, PAGES
from app.web.gallery.routes import ADDRESS, address_of
from tests.browser.conftest import Tabs
from tests.browser.stage import Stage
from tests.browser.test_accessible import RULES

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]
ALL = (*ENTRIES, *PAGES)
N_PARTS = 3  # axe takes a second or more for a page
ASKED = {"runOnly": RULES, "resultTypes": ["violations"]}
NARROWEST = {"width": 320, "height": 800}
_WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"


@pytest.mark.parametrize("part", range(N_PARTS))
@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 390)])
async def test_every_state_is_accessible(
    stage: Stage, tabs: Tabs, scheme: str, width: int, part: int
) -> None:
    stage.door.settings = Settings(dev_gallery=True)
    viewport = {"width": width, "height": 900}
    page = await tabs.open(f"{stage.address}{ADDRESS}", color_scheme=scheme, viewport=viewport)
    faults = []
    for name in ALL[part::N_PARTS]:
        await page.goto(stage.address + address_of(name), wait_until="domcontentloaded")
        found = await Axe().run(page, options=ASKED)
        if found.violations_count:
            faults.append(f"{name}: {found.generate_report()}")
    assert not faults, "\n".join(faults)


async def test_no_state_scrolls_sideways_and_hostile_words_run_nowhere(
    stage: Stage, tabs: Tabs
) -> None:
    stage.door.settings = Settings(dev_gallery=True)
    page = await tabs.open(f"{stage.address}{ADDRESS}", viewport=NARROWEST)
    wide = []
    for name in ALL:
        await page.goto(stage.address + address_of(name), wait_until="domcontentloaded")
        needed, there = await page.evaluate(_WIDTHS)
        if needed > there:
            wide.append(f"{name}: {needed} > {there}")
        assert await page.evaluate("typeof window.__hit") == "undefined", name
    assert not wide
    assert not tabs.faults
