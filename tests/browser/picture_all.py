"""Takes a picture of everything in the gallery, light, dark and narrow, into a folder.

Owns the names of the files: `<entry>-<form>.png`. What is served is a stage with the gallery open,
so nothing has to run for it, and every state is there at once.
"""

import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Page, async_playwright

from app.settings import Settings
from app.web.assets import htmx
from app.web.gallery import ENTRIES, PAGES
from app.web.gallery.invented import NOW
from app.web.gallery.routes import address_of
from tests.api.home import Home
from tests.browser.htmx_file import htmx_bytes
from tests.browser.picturing import chromium_of, tab
from tests.browser.stage import Stage


class Form(NamedTuple):
    """What a page is looked at with."""

    name: str
    viewport: dict[str, int]
    scheme: str


FORMS = (
    Form("light-1280", {"width": 1280, "height": 900}, "light"),
    Form("dark-1280", {"width": 1280, "height": 900}, "dark"),
    Form("light-390", {"width": 390, "height": 844}, "light"),
)
_PICTURE_MS = 90_000  # the longest pages take long on a machine without a graphics card


def file_name(entry: str, form: str) -> str:
    """Return the name of a picture's file.

    >>> file_name("overview: no chart yet", "dark-1280")
    'overview-no-chart-yet-dark-1280.png'
    """
    return f"{re.sub('[^a-z0-9]+', '-', entry.lower()).strip('-')}-{form}.png"


async def picture_all(out: Path) -> list[Path]:
    """Take them all into a folder that is there; return the files."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Home(Path(folder) / "home"))
        stage.door.settings = Settings(dev_gallery=True)
        stage.is_ticking = False
        script = htmx_bytes(htmx(), Path(folder))
        await stage.start()
        try:
            async with async_playwright() as playwright:
                chromium = await chromium_of(playwright)
                taken = []
                for form in FORMS:
                    page = await tab(chromium, script, form.viewport, form.scheme)
                    await page.clock.set_fixed_time(NOW)  # the moment that the figures are of
                    taken += await _in_form(page, stage.address, out, form.name)
                    await page.context.close()
                await chromium.close()
        finally:
            await stage.stop()
            stage.home.ledger.close()
    return taken


async def _in_form(page: Page, address: str, out: Path, form: str) -> list[Path]:
    taken = []
    for entry in (*ENTRIES, *PAGES):
        answer = await page.goto(address + address_of(entry), wait_until="load")
        assert answer is not None, entry
        assert answer.ok, f"{entry}: {answer.status}"
        path = out / file_name(entry, form)
        await page.screenshot(path=path, full_page=True, timeout=_PICTURE_MS)
        taken.append(path)
    return taken
