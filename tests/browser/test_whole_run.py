"""A run as its user meets it: `longwatch serve`, workers, the simulator, and a browser in front."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from app.core.states import PartitionState
from app.ledger.lock import living_service
from app.simulator.server import SimulatorThread
from tests.browser.conftest import Tabs
from tests.browser.looking import badge, concurrency, row, until_moved, until_reads
from tests.process.case_run import HANG_S, CaseRun
from tests.process.run_process import RunProcess, SimulatorProcess
from tests.process.serving import run_of, serving, submission
from tests.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass
class Live:
    run: RunProcess
    simulator: SimulatorProcess
    client: httpx.Client
    address: str

    def state(self, name: str) -> PartitionState:
        return next(each.state for each in self.run.partitions() if each.name == name)


@pytest_asyncio.fixture(loop_scope="session")
async def live(tmp_path: Path) -> AsyncIterator[Live]:
    """Serve a run of two partitions whose answers take a while."""
    simulator = SimulatorProcess()
    simulator.start()
    run = RunProcess(tmp_path, simulator.url, concurrency=8, max_new_tokens=400)
    for name in ("B1_chat", "B2_code"):
        run.write_prompts(name, [f"a{n}" for n in range(5_000)])
    with ExitStack() as stack:
        stack.callback(simulator.kill)
        stack.callback(run.close)
        client = await asyncio.to_thread(stack.enter_context, serving(run))
        answer = await asyncio.to_thread(client.post, "/runs", json=submission(run))
        assert answer.status_code < 300, answer.text
        origin = str(client.base_url).removesuffix("/api/v1/")
        yield Live(run, simulator, client, f"{origin}/runs/{run_of(client)['id']}")


async def test_what_is_pressed_on_the_page_reaches_ledger_api_and_server(
    live: Live, tabs: Tabs
) -> None:
    page = await tabs.open(live.address)
    await until_reads(badge(page), text="live")
    await until_moved(page, 2)
    for name in ("B1_chat", "B2_code"):
        await row(page, name).get_by_role("button", name=f"Pause {name}").click()
        await until_reads(row(page, name), text="Paused")
        assert live.state(name) is PartitionState.PAUSED
    shown = {each["name"]: each["state"] for each in run_of(live.client)["partitions"]}
    assert shown == {"B1_chat": "paused", "B2_code": "paused"}
    await wait_until(lambda: not live.simulator.counters()["running"], "the server to be idle")
    await row(page, "B1_chat").get_by_role("button", name="Resume B1_chat").click()
    await until_moved(page, 2)
    await concurrency(page, "B1_chat").fill("3")
    await page.keyboard.press("Enter")
    await wait_until(
        lambda: live.simulator.counters()["running"] == 3, "three requests on the server"
    )


async def test_sigterm_is_not_held_up_by_an_open_page(live: Live, tabs: Tabs) -> None:
    """The two seconds themselves are measured in tests/web, where no worker has to be ended."""
    page = await tabs.open(live.address)
    await until_moved(page)
    assert live.run.process is not None
    live.run.signal(signal.SIGTERM)
    assert await asyncio.to_thread(live.run.wait, HANG_S) == 0
    assert "graceful shutdown exceeded" not in live.run.log_tail(), "streams had to be cut"
    await until_reads(badge(page), text="s old", within_ms=10_000)


@pytest.mark.slow
async def test_a_page_that_is_open_when_its_run_ends_shows_the_end(
    tabs: Tabs, tmp_path: Path
) -> None:
    """The service was started for the run and leaves with it; what is shown is no old figure."""
    with SimulatorThread(port=0) as simulator, ExitStack() as stack:
        simulator.script({"@@last": ["ok delay=600", "ok"], "*": ["ok"]})
        run = CaseRun(tmp_path, simulator.url, has_pages=True)
        stack.callback(run.close)
        run.write_rows([*(f"a{n}" for n in range(20)), "b @@last"])
        run.start()
        await asyncio.to_thread(run.wait_kept, 1)  # the service answers before it has a run
        page = await tabs.open(f"{address_of(run)}/runs/1")
        await until_reads(page.locator("#verdict"), text="1 running")
        await wait_until(lambda: simulator.stats.in_flight == 1, "all but the last")
        await asyncio.to_thread(
            httpx.post, f"{simulator.url}/abort_request", json={"abort_all": True}
        )
        assert await asyncio.to_thread(run.wait) == 0, run.log_tail()
        await until_reads(page.locator("#verdict"), text="Finished after")
        await until_reads(badge(page), text="ended with the run")
        assert await page.locator("html.stale, html.aged").count() == 0


def address_of(run: CaseRun) -> str:
    holder = living_service(run.home)
    return holder.address if holder is not None else ""
