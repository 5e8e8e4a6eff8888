"""ui-01: a real nginx with its default buffering between browser and service."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page

from app.api.listening import bind
from tests.browser.conftest import Tabs
from tests.browser.looking import badge, row, until_moved, until_reads
from tests.browser.stage import Stage
from tests.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]
# what the distribution sets as buffering stays as it is; only its places are a test's own
CONFIG = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {more}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            proxy_set_header Host $http_host;
        }}
    }}
}}
"""


@dataclass
class Proxy:
    """An nginx that can be stopped and started again at the same address."""

    folder: Path
    port: int
    upstream: int
    more: str = ""
    process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        found = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
        assert found is not None, "install nginx: script/test does"
        (self.folder / "nginx.conf").write_text(
            CONFIG.format(
                folder=self.folder, port=self.port, upstream=self.upstream, more=self.more
            )
        )
        command = [found, "-p", str(self.folder), "-c", "nginx.conf", "-e", "error.log"]
        self.process = await asyncio.create_subprocess_exec(*command)

        async def answers() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                return False
            writer.close()
            return True

        while not await answers():
            assert self.process.returncode is None, (self.folder / "error.log").read_text()
            await asyncio.sleep(0)

    async def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            await self.process.wait()
            self.process = None


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(stage: Stage, tmp_path: Path) -> AsyncIterator[Proxy]:
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    folder = tmp_path / "nginx"
    folder.mkdir()
    made = Proxy(folder, port, stage.port)
    yield made
    await made.stop()


async def opened(stage: Stage, tabs: Tabs, proxy: Proxy) -> Page:
    """Open the run's page through the proxy, logged in: behind a proxy nobody is the own user."""
    page = await tabs.open(f"{proxy.address}/login?next=/runs/{stage.home.run_id}", cdn="refused")
    await page.get_by_label("Token").fill("token of a test")
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(f"**/runs/{stage.home.run_id}*")
    return page


@pytest.mark.parametrize("more", ["", "proxy_ignore_headers X-Accel-Buffering;"])
async def test_ui_01_behind_nginx_the_page_lives_and_says_when_the_proxy_is_gone(
    stage: Stage, tabs: Tabs, proxy: Proxy, more: str
) -> None:
    """By stream; and, where the proxy keeps it to itself in spite of the header, by asking."""
    proxy.more = more
    await proxy.start()
    page = await opened(stage, tabs, proxy)
    await until_moved(page, 2)
    await until_reads(badge(page), text="live")
    # a press goes through as well: Host and origin are the proxy's own
    await row(page, "B1_chat").get_by_role("button", name="Pause B1_chat", exact=True).click()
    await wait_until(lambda: stage.home.partition("B1_chat").state == "paused", "the pause")
    await row(page, "B1_chat").locator(".pill.pause").wait_for()
    await until_moved(page)
    await until_reads(badge(page), text="live")

    await proxy.stop()
    await until_reads(badge(page), text="disconnected", within_ms=30_000)
    await proxy.start()
    await until_reads(badge(page), text="live", within_ms=30_000)
    await until_moved(page)
