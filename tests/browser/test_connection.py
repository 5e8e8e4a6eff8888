"""The way the figures come: CDN or none, stream or asking, a service that leaves and comes back."""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from playwright.async_api import Locator, Page

from app.core.states import PartitionState
from app.web.live import MAX_STREAMS
from tests.browser.conftest import Tabs
from tests.browser.looking import (
    badge,
    concurrency,
    own_concurrency,
    row,
    until_moved,
    until_reads,
)
from tests.browser.stage import Stage, set_concurrency
from tests.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")
GREEN, MUTE = "rgb(10, 114, 104)", "rgb(78, 91, 105)"  # --ok and --mute of the light theme
DOT = "sign => getComputedStyle(sign.querySelector('svg')).fill"
SEEN_AT = "figure => +getComputedStyle(figure.closest('.num')).opacity"
HIDE = """isHidden => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def signal(page: Page, n: int) -> Locator:
    """Return a signal of the head: 0 is the page, 1 the runner, 2 the server."""
    return page.locator(".links > span").nth(n)


async def dot(page: Page, n: int) -> str:
    colour: str = await signal(page, n).evaluate(DOT)
    return colour


@pytest.mark.parametrize("cdn", ["refused", "hanging"])
async def test_without_the_cdn_the_page_is_live_and_says_how_its_buttons_work(
    stage: Stage, tabs: Tabs, cdn: str
) -> None:
    page = await tabs.open(stage.run_address, cdn)
    await until_moved(page, 2)
    await page.locator("#basic:not([hidden])").wait_for()
    await row(page, "B1_chat").get_by_role("button", name="Pause B1_chat").click()
    await page.wait_for_url(stage.run_address, wait_until="domcontentloaded")
    await until_reads(row(page, "B1_chat"), text="Paused")
    assert stage.home.partition("B1_chat").state is PartitionState.PAUSED


async def test_with_the_cdn_there_is_no_word_of_basic_mode(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await until_moved(page, 8)
    assert await page.locator("#basic").is_hidden()


async def test_a_script_with_another_digest_is_not_run(
    stage: Stage, tabs: Tabs, htmx_file: bytes
) -> None:
    tabs.htmx_file = htmx_file + b"\nwindow.changed = 1;"
    page = await tabs.open(stage.run_address, "refused")
    await page.context.unroute_all()
    await page.context.route("https://cdn.jsdelivr.net/**", tabs._cdn("ok"))
    await page.reload()
    await page.locator("html[data-htmx=off]").wait_for()
    assert await page.evaluate("[typeof htmx, window.changed]") == ["undefined", None]
    await until_moved(page)


async def test_without_script_figures_are_there_and_forms_work(stage: Stage, tabs: Tabs) -> None:
    set_concurrency(stage, "B1_chat", 64)
    page = await tabs.open(stage.run_address, java_script_enabled=False)
    assert "k" in (await page.locator("#rows td[data-l='tok/s'] span").first.inner_text())
    await row(page, "B1_chat").get_by_role("button", name="More concurrency").click()
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 72, "the ledger to say 72")
    await row(page, "B2_code").get_by_role("button", name="Pause B2_code").click()
    await until_shown(page, "Paused")


async def until_shown(page: Page, text: str) -> None:
    """Wait on a page without script, where nothing can be evaluated."""
    await page.locator("#rows").get_by_text(text).first.wait_for()


@pytest.mark.parametrize("streams", ["silent", pytest.param("refused", marks=pytest.mark.slow)])
async def test_ui_01_where_no_stream_comes_through_the_page_asks_every_two_seconds(
    stage: Stage, tabs: Tabs, streams: str
) -> None:
    stage.ward.streams = streams
    page = await tabs.open(stage.run_address)
    await until_reads(badge(page), text="every 2 s")
    await until_moved(page)
    began_s = asyncio.get_running_loop().time()
    await until_moved(page)
    asked = stage.ward.since(began_s)
    assert set(asked) == {f"/runs/{stage.home.run_id}/frame"}


async def test_ui_01_a_page_without_news_says_so_and_recovers_by_itself(
    stage: Stage, tabs: Tabs
) -> None:
    stage.door.is_seen = True
    page = await tabs.open_with_clock(stage.run_address)
    await until_moved(page)
    await stage.stop()
    assert [await dot(page, n) for n in (1, 2)] == [GREEN, GREEN]
    await page.clock.fast_forward(5_000)
    await until_reads(badge(page), text="s old")
    for n in (1, 2):  # runner and server claim nothing that the page cannot know
        assert re.search(r" as of \d\d:\d\d:\d\d$", await signal(page, n).inner_text())
        assert await dot(page, n) == MUTE
    assert "ago" not in await signal(page, 1).inner_text()
    await page.clock.fast_forward(12_000)
    await until_reads(badge(page), text="no updates for")
    assert await page.locator("html.stale").count() == 1
    assert await page.locator("#speed").evaluate(SEEN_AT) < 1
    await page.clock.fast_forward(12_000)
    await until_reads(badge(page), text="disconnected", within_ms=3_000)
    await until_reads(page.locator("#say"), text="figures shown are old")
    await page.evaluate("document.body.mark = 1")
    await stage.start()
    await until_reads(badge(page), text="live", within_ms=10_000)
    await until_moved(page, 2)
    assert await page.evaluate("document.body.mark") == 1, "the page was reloaded"
    assert await page.locator("html.stale").count() == 0
    assert "as of" not in await page.locator(".links").inner_text()
    assert [await dot(page, n) for n in (1, 2)] == [GREEN, GREEN]
    await wait_until(lambda: stage.site.live.n_viewers == 1, "a stream again, not questions")


async def test_a_service_started_again_under_an_open_page_goes_on_moving_it(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    await until_moved(page)
    await stage.stop()
    set_concurrency(stage, "B1_chat", 93)
    await stage.start()
    stage.ward.is_broken = True
    await wait_until(lambda: len(stage.ward.asked) >= 3, "three refusals")
    stage.ward.is_broken = False
    await until_moved(page, 2)
    await until_reads(badge(page), text="live")
    await until_reads(concurrency(page, "B1_chat"), value="93")
    await wait_until(lambda: stage.site.live.n_viewers == 1, "a stream again, not questions")


@pytest.mark.slow
@pytest.mark.alone
async def test_ui_03_a_hidden_tab_asks_nothing_and_is_fresh_at_once_on_return(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open_with_clock(stage.run_address)
    await until_moved(page)
    await page.evaluate(HIDE, True)
    await page.clock.fast_forward(10_000)
    await wait_until(lambda: stage.site.live.n_viewers == 0, "the stream to be given up")
    hidden_s = asyncio.get_running_loop().time()
    speed = stage.door.speed
    await wait_until(lambda: stage.door.speed >= speed + 300, "six looks")
    assert stage.ward.since(hidden_s) == []
    back_s = asyncio.get_running_loop().time()
    await page.evaluate(HIDE, False)
    await until_moved(page)
    assert asyncio.get_running_loop().time() - back_s < 2
    await until_moved(page, 2)
    assert len([each for each in stage.ward.asked if back_s <= each.at_s <= back_s + 1]) <= 2


async def test_ui_03_a_hidden_tab_that_asks_stops_at_once(stage: Stage, tabs: Tabs) -> None:
    stage.ward.streams = "refused"
    page = await tabs.open(stage.run_address)
    await until_reads(badge(page), text="every 2 s")
    await page.evaluate(HIDE, True)
    hidden_s = asyncio.get_running_loop().time()
    speed = stage.door.speed
    await wait_until(lambda: stage.door.speed >= speed + 300, "six looks")
    assert len(stage.ward.since(hidden_s)) <= 1, "one may have been on its way"
    await page.evaluate(HIDE, False)
    await until_moved(page)


@pytest.mark.slow
@pytest.mark.alone
async def test_ui_02_ten_tabs_of_one_browser_all_load_and_take_orders(
    stage: Stage, tabs: Tabs
) -> None:
    context = await tabs.context()
    loop = asyncio.get_running_loop()
    for n in range(10):
        page = await tabs.page(context)
        began_s = loop.time()
        await page.goto(stage.run_address, wait_until="domcontentloaded")
        if n == 9:
            assert loop.time() - began_s < 3
    assert stage.site.live.n_viewers <= MAX_STREAMS
    began_s = loop.time()
    await row(page, "B1_chat").get_by_role("button", name="Pause B1_chat").click()
    await wait_until(
        lambda: stage.home.partition("B1_chat").state is PartitionState.PAUSED,
        "the pause of the tenth tab",
        within_s=2,
    )
    await until_reads(row(page, "B1_chat"), text="Paused")


async def test_a_service_that_has_nothing_new_is_live_all_the_same(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open_with_clock(stage.run_address)
    await until_moved(page)
    live = stage.site.live
    (key,) = live._pages
    still = live._make_sheet(key)
    assert still is not None
    live._make_sheet = lambda _key: replace(still, at=datetime.now(UTC))
    await page.wait_for_timeout(4_500)
    assert await badge(page).text_content() == "live"
    stage.is_ticking = False
    await page.clock.fast_forward(5_000)
    await until_reads(badge(page), text="s old")
