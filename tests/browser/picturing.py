"""What every picture is taken with: one Chromium, and a tab that finds htmx at its CDN."""

import shutil

from playwright.async_api import Browser, Page, Playwright

from tests.browser.conftest import CDN


async def chromium_of(playwright: Playwright) -> Browser:
    return await playwright.chromium.launch(
        executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
    )


async def tab(chromium: Browser, script: bytes, viewport: dict[str, int], scheme: str) -> Page:
    """Return a tab of its own. `script` are the bytes of htmx, `scheme` is light or dark."""
    context = await chromium.new_context(
        viewport=viewport,  # type: ignore[arg-type]  # a plain dict of width and height
        color_scheme=scheme,  # type: ignore[arg-type]  # light or dark
        reduced_motion="reduce",
    )
    headers = {"content-type": "application/javascript", "access-control-allow-origin": "*"}
    await context.route(CDN, lambda route: route.fulfill(body=script, headers=headers))
    return await context.new_page()
