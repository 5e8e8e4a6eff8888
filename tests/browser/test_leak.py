"""A tab may stay open for days: ten thousand frames leave nothing behind."""

import pytest
from playwright.async_api import CDPSession

from tests.browser.conftest import Tabs
from tests.browser.looking import until_moved
from tests.browser.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]
MOST_GROWN_BYTES = 1_000_000
# the page's own stream, kept where the test can give it frames faster than any service
CATCH = """(() => {
  const Real = EventSource;
  window.EventSource = class extends Real {
    constructor(url) { super(url); window.caught = this; }
  };
})()"""
FRAMES = """async ([from, n]) => {
  const ids = [...document.querySelectorAll('#rows span[id]')].map(each => each.id);
  const boxes = [...document.querySelectorAll('#rows [role=progressbar]')].map(each => each.id);
  for (let i = from; i < from + n; i += 1) {
    const at = new Date().toISOString();
    const frame = { seq: `x-${i}`, at, title: `${i}`, texts: {}, attrs: {} };
    for (const id of ids) frame.texts[id] = `${i}`;
    for (const id of boxes) frame.attrs[id] = { 'aria-valuenow': `${i % 100}` };
    if (i % 20 === 0) {
      const row = document.querySelector('#rows tr'), kind = i % 40 ? 'run' : 'pause';
      const drawn = row.outerHTML.replace(/data-kind="\\w+"/, `data-kind="${kind}"`);
      frame.html = `<hx-partial hx-target="#${row.id}" hx-swap="outerMorph">${drawn}</hx-partial>`;
    }
    caught.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(frame) }));
    if (i % 20 === 0) await new Promise(resolve => setTimeout(resolve));
  }
}"""


async def measured(session: CDPSession) -> tuple[float, float, float]:
    """Return bytes of the heap, nodes and listeners, after the garbage is gone."""
    for _ in range(3):
        await session.send("HeapProfiler.collectGarbage")
    found = await session.send("Performance.getMetrics")
    by_name = {each["name"]: each["value"] for each in found["metrics"]}
    return by_name["JSHeapUsedSize"], by_name["Nodes"], by_name["JSEventListeners"]


async def test_ten_thousand_frames_leave_nothing_behind(stage: Stage, tabs: Tabs) -> None:
    context = await tabs.context()
    page = await tabs.page(context)
    await page.add_init_script(CATCH)
    await page.goto(stage.run_address)
    await page.locator("html[data-htmx=on]").wait_for()
    await until_moved(page)
    stage.is_ticking = False
    session = await context.new_cdp_session(page)
    await session.send("Performance.enable")
    await page.evaluate(FRAMES, [0, 1_000])  # what is made once is made
    before = await measured(session)
    for begin in range(1_000, 11_000, 1_000):
        await page.evaluate(FRAMES, [begin, 1_000])
    after = await measured(session)
    assert await page.title() == "10999"
    assert after[0] - before[0] < MOST_GROWN_BYTES
    assert after[1:] == before[1:]
