"""Where htmx comes from: the lock is npm's file; a local copy, local only, none at all."""

import pytest
from playwright.async_api import Page

from app.core.states import PartitionState
from app.web.assets import Offering
from app.web.offline import pinned
from tests.browser.conftest import Tabs
from tests.browser.looking import row, until_moved, until_reads
from tests.browser.stage import Stage
from tests.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def restart(stage: Stage, offered: Offering) -> None:
    await stage.stop()
    stage.offered = offered
    await stage.start()


def scripts(page: Page) -> list[str]:
    """Return the addresses of scripts that the page asks for from now on."""
    asked: list[str] = []
    page.on(
        "request",
        lambda each: asked.append(each.url) if each.resource_type == "script" else None,
    )
    return asked


async def pause_first(stage: Stage, page: Page) -> None:
    await row(page, "B1_chat").get_by_role("button", name="Pause B1_chat").click()
    await wait_until(
        lambda: stage.home.partition("B1_chat").state is PartitionState.PAUSED, "the pause"
    )


async def test_the_lock_is_what_npm_has(htmx_file: bytes) -> None:
    assert pinned()[0].fault(htmx_file) is None
    assert [url.split("/")[2] for url in pinned()[0].urls] == ["cdn.jsdelivr.net", "unpkg.com"]


async def test_the_copy_stands_in_for_the_cdn_and_is_named_first_from_then_on(
    stage: Stage, tabs: Tabs, htmx_file: bytes
) -> None:
    await restart(stage, Offering(copy=htmx_file))
    page = await tabs.open(stage.run_address, "refused")
    await page.locator("html[data-htmx=on]").wait_for()
    cookies = {each.get("name"): each.get("value") for each in await page.context.cookies()}
    assert cookies["assets"] == "local"
    asked = scripts(page)
    await page.reload()
    await page.locator("html[data-htmx=on]").wait_for()
    assert not [url for url in asked if "jsdelivr" in url]
    assert [url for url in asked if url.endswith(f"/assets/{pinned()[0].name}")]
    await pause_first(stage, page)
    await page.locator(".toast").wait_for()


async def test_a_cdn_that_hangs_leaves_basic_mode_and_loads_nothing_twice(
    stage: Stage, tabs: Tabs, htmx_file: bytes
) -> None:
    await restart(stage, Offering(copy=htmx_file))
    page = await tabs.open(stage.run_address, "hanging")
    await page.locator("#basic:not([hidden])").wait_for()
    await until_moved(page)
    assert await page.evaluate("document.querySelectorAll('[data-htmx-src]').length") == 1
    await pause_first(stage, page)
    await page.wait_for_url(stage.run_address, wait_until="domcontentloaded")
    await until_reads(row(page, "B1_chat"), text="Paused")


async def test_local_never_names_the_cdn(stage: Stage, tabs: Tabs, htmx_file: bytes) -> None:
    await restart(stage, Offering(mode="local", copy=htmx_file))
    page = await tabs.page(await tabs.context("refused"))
    asked = scripts(page)
    answer = await page.goto(stage.run_address)
    assert answer
    await page.locator("html[data-htmx=on]").wait_for()
    assert "jsdelivr" not in answer.headers["content-security-policy"]
    assert "jsdelivr" not in await answer.text()
    assert not [url for url in asked if "jsdelivr" in url]
    await until_moved(page)


async def test_off_is_basic_mode_from_the_start(stage: Stage, tabs: Tabs, htmx_file: bytes) -> None:
    await restart(stage, Offering(mode="off", copy=htmx_file))
    page = await tabs.open(stage.run_address, "refused")
    await until_reads(page.locator("#basic:not([hidden])"), text="every button works")
    assert await page.evaluate("document.querySelectorAll('[data-htmx-src]').length") == 0
    await until_moved(page, 2)
    await pause_first(stage, page)
    await until_reads(row(page, "B1_chat"), text="Paused")


async def test_a_service_of_another_version_makes_the_page_new_once(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    await until_moved(page)
    await page.evaluate("document.body.mark = 1")
    await stage.stop()
    await stage.start()
    await until_moved(page, 2)
    assert await page.evaluate("document.body.mark") == 1, "the same version: no reload"
    await stage.stop()
    await stage.start()
    stage.site.live._assets = "another"
    await page.wait_for_function("() => !document.body.mark")
    # its assets are still not those that the frames name: it does not begin again, it says so
    await page.locator("#news:not([hidden])").wait_for()
    await until_moved(page, 2)


async def test_nobody_who_types_is_reloaded(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await until_moved(page)
    await page.evaluate("document.body.mark = 1")
    await row(page, "B1_chat").locator("input[name=requests]").fill("12")
    await stage.stop()
    await stage.start()
    stage.site.live._assets = "another"
    await page.locator("#news:not([hidden])").wait_for()
    assert await page.evaluate("document.body.mark") == 1
    assert await row(page, "B1_chat").locator("input[name=requests]").input_value() == "12"
