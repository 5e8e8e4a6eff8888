"""One Chromium for the tests of a process, a context for each tab, and a CDN that does as told.

All on one event loop of the session: a browser belongs to the loop that started it.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Route, async_playwright

from app.web.assets import htmx
from tests.api.home import Home
from tests.browser.htmx_file import htmx_bytes
from tests.browser.stage import Stage

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
CDN = "https://cdn.jsdelivr.net/**"
WAIT_MS = 45_000


@pytest.fixture(scope="session")
def htmx_file(request: pytest.FixtureRequest) -> bytes:
    return htmx_bytes(htmx(), Path(request.config.cache.mkdir("htmx")))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    found = next((path for name in _CHROMIUM if (path := shutil.which(name))), None)
    assert found, "these tests need Chromium; script/test installs it"
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=found, args=[*_ARGUMENTS])
        yield chromium
        await chromium.close()


@dataclass
class Tabs:
    """Opens pages as a person's browser does. `cdn` is ok, refused or hanging."""

    browser: Browser
    htmx_file: bytes
    faults: list[str] = field(default_factory=list)
    _contexts: list[BrowserContext] = field(default_factory=list)
    _unanswered: asyncio.Event = field(default_factory=asyncio.Event)

    async def context(self, cdn: str = "ok", **options: Any) -> BrowserContext:
        asked = {"reduced_motion": "reduce", "viewport": {"width": 1280, "height": 900}, **options}
        context = await self.browser.new_context(**asked)
        context.set_default_timeout(WAIT_MS)
        self._contexts.append(context)
        await context.route(CDN, self._cdn(cdn))
        return context

    async def page(self, context: BrowserContext) -> Page:
        page = await context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on(
            "console",
            lambda said: (
                self.faults.append(said.text) if "Content Security Policy" in said.text else None
            ),
        )
        return page

    async def open(self, address: str, cdn: str = "ok", **options: Any) -> Page:
        page = await self.page(await self.context(cdn, **options))
        await page.goto(address, wait_until="domcontentloaded")
        if cdn == "ok" and options.get("java_script_enabled", True):
            await page.locator("html[data-htmx=on]").wait_for()
        return page

    async def open_with_clock(self, address: str) -> Page:
        """Open a page whose own time a test can send forward."""
        page = await self.page(await self.context())
        await page.clock.install()
        await page.goto(address, wait_until="domcontentloaded")
        await page.locator("html[data-htmx=on]").wait_for()
        return page

    def _cdn(self, mode: str) -> Callable[[Route], Awaitable[None]]:
        async def answer(route: Route) -> None:
            if mode == "ok":
                # without the CORS header a browser does not compare the digest, it refuses
                headers = {
                    "content-type": "application/javascript",
                    "access-control-allow-origin": "*",
                }
                await route.fulfill(body=self.htmx_file, headers=headers)
            elif mode == "refused":
                await route.abort()
            else:
                await self._unanswered.wait()

        return answer

    async def close(self) -> None:
        for context in self._contexts:
            await context.unroute_all(behavior="ignoreErrors")
            await context.close()
        self._unanswered.set()


@pytest_asyncio.fixture(loop_scope="session")
async def tabs(browser: Browser, htmx_file: bytes) -> AsyncIterator[Tabs]:
    made = Tabs(browser, htmx_file)
    yield made
    await made.close()
    assert not made.faults


@pytest_asyncio.fixture(loop_scope="session")
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    home = Home(tmp_path / "home", names=("B1_chat", "B2_code", "B3_tools"))
    made = Stage(home)
    await made.start()
    yield made
    await made.stop()
    home.ledger.close()
