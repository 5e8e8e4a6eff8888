"""Takes the README's pictures of the demo: `python -m tests.browser.take_pictures`, three minutes.

Owns what is done on the page before each picture, so that they can be taken again when it changes.
With `--all FOLDER` it takes everything in the gallery instead (`picture_all.py`), two minutes.
"""

import asyncio
import re
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from app.web.assets import htmx
from tests.browser.htmx_file import htmx_bytes
from tests.browser.picture_all import picture_all
from tests.browser.picturing import chromium_of, tab

PICTURES = Path(__file__).parent / "pictures"
_SERVES = re.compile(r"Longwatch serves .* at (http://\S+)")
_UNTIL_PERCENT = 22
# where this machine keeps the demo is nobody's concern
_NO_PATHS = """() => {
  for (const el of document.querySelectorAll('p.where')) el.hidden = true;
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (texts.nextNode())
    texts.currentNode.data = texts.currentNode.data.replace(/\\/tmp\\/[^\\s,]+/g, '/data/demo');
}"""
# a control has just been changed: the time left comes back when there is enough to tell it by
_HAS_TIMES = """() => document.querySelector('#end')?.dateTime
  && !/estimating/.test(document.querySelector('#tiles').textContent)
  && ![...document.querySelectorAll('#rows tr')].some(row => /estimating/.test(row.textContent))"""
_TIMES_WITHIN_MS = 90_000
_VIEWS = (
    ("overview-light", {"width": 1280, "height": 900}, "light"),
    ("overview-dark", {"width": 1280, "height": 900}, "dark"),
    ("overview-phone", {"width": 390, "height": 844}, "light"),
)
# the other pages, once the run is some way on; a sample is one that has been answered
_PAGES = (
    ("partition-light", "/runs/1/p/B3_facts", _VIEWS[0]),
    ("partition-dark", "/runs/1/p/B3_facts", _VIEWS[1]),
    ("partition-phone", "/runs/1/p/B3_facts", _VIEWS[2]),
    ("sample-light", "/runs/1/samples/1", _VIEWS[0]),
    ("server-light", "/runs/1/server", _VIEWS[0]),
)


def main() -> None:
    given = ArgumentParser(description=__doc__)
    given.add_argument("--all", type=Path, metavar="FOLDER", help="picture the whole gallery")
    out: Path | None = given.parse_args().all
    if out is None:
        asyncio.run(_demo())
    else:
        out.mkdir(parents=True, exist_ok=True)
        print(f"{len(asyncio.run(picture_all(out)))} pictures are in {out}")


async def _demo() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "app", "demo", "--home", folder, "--port", "0"]
        demo = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            await _take(await _address(demo), Path(folder))
        finally:
            demo.terminate()
            await demo.communicate()


async def _address(demo: asyncio.subprocess.Process) -> str:
    assert demo.stdout
    async for line in demo.stdout:
        found = _SERVES.search(line.decode())
        if found:
            return found[1]
    raise AssertionError("the demo has ended before it served")


async def _take(address: str, folder: Path) -> None:
    script = htmx_bytes(htmx(), folder)
    async with async_playwright() as playwright:
        chromium = await chromium_of(playwright)
        page = await _open(chromium, f"{address}/runs/1", script, _VIEWS[0][1], "light")
        await page.locator("#rows tr").first.wait_for(timeout=60_000)
        await page.get_by_label("Concurrency of B3_facts").fill("24")
        await page.get_by_label("Concurrency of B3_facts").press("Enter")
        while int((await page.locator("#pct").inner_text()).split()[0]) < _UNTIL_PERCENT:
            await page.wait_for_timeout(500)
        await page.get_by_role("button", name="Pause B6_dialogue").click()
        await page.locator("[data-name=B6_dialogue] .pill.pause").wait_for()
        await page.get_by_role("button", name="Drain B8_plans").click()
        await page.wait_for_function(_HAS_TIMES, timeout=_TIMES_WITHIN_MS)
        for name, viewport, scheme in _VIEWS:
            shown = await _open(chromium, f"{address}/runs/1", script, viewport, scheme)
            await shown.wait_for_function(_HAS_TIMES, timeout=_TIMES_WITHIN_MS)
            await shown.wait_for_timeout(4_000)
            await shown.evaluate(_NO_PATHS)
            await shown.screenshot(path=PICTURES / f"{name}.png", full_page=True)
            await shown.context.close()
        for name, path, (_, viewport, scheme) in _PAGES:
            shown = await _open(chromium, address + path, script, viewport, scheme)
            await shown.wait_for_timeout(4_000)
            await shown.evaluate(_NO_PATHS)
            await shown.screenshot(path=PICTURES / f"{name}.png", full_page=True)
            await shown.context.close()
        await chromium.close()


async def _open(
    chromium: Browser, address: str, script: bytes, viewport: dict[str, int], scheme: str
) -> Page:
    page = await tab(chromium, script, viewport, scheme)
    for _ in range(60):
        answer = await page.goto(address, wait_until="domcontentloaded")
        if answer and answer.ok:
            break
        await page.wait_for_timeout(500)
    return page


if __name__ == "__main__":
    main()
