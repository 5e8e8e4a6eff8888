"""A hundred viewers of a run that is at work: one sheet a tick for all, and all see the newest."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from app.clock import SystemClock
from app.files.spec_files import load_spec
from app.service import Service
from app.settings import Settings
from app.simulator.answers import LengthModel
from app.simulator.server import SimulatorThread
from app.web.live import LivePages
from tests.process.run_process import RunProcess
from tests.process.shown import Cells
from tests.stage import random_texts
from tests.waiting import wait_until
from tests.web.stream_reader import StreamReader

N_VIEWERS, N_TICKS = 100, 5


class Audience:
    """What each viewer's page holds: it applies frames as a browser does."""

    def __init__(self) -> None:
        self.texts: dict[int, dict[str, str]] = defaultdict(dict)
        self.seen: dict[int, dict[str, dict[str, str]]] = defaultdict(dict)

    def hear(self, number: int, _event: str, data: bytes) -> None:
        frame: dict[str, Any] = orjson.loads(data)
        if "seq" not in frame:
            return
        page = self.texts[number]
        if "html" in frame:
            page.update(Cells(frame["html"]).texts)
        page.update(frame.get("texts", {}))
        self.seen[number][frame["seq"]] = dict(page)

    def all_saw(self, seq: str) -> bool:
        return sum(seq in seen for seen in self.seen.values()) == N_VIEWERS

    def n_events(self) -> int:
        return min(len(self.seen[number]) for number in range(N_VIEWERS))


@pytest.fixture
def simulator() -> Iterator[SimulatorThread]:
    with SimulatorThread(lengths=LengthModel(mean_tokens=400, cap_tokens=2_000)) as server:
        yield server


@asynccontextmanager
async def served(folder: Path, simulator: SimulatorThread) -> AsyncIterator[Service]:
    """Serve a run of two partitions in this very process; its workers are real ones."""
    run = RunProcess(folder, simulator.url, concurrency=4, max_new_tokens=2_000)
    for name in ("B1_p", "B2_q"):
        run.write_prompts(name, random_texts(300, seed=1))
    settings = Settings(home=run.home, port=0)
    async with Service(settings, SystemClock(), lambda _: None) as service:
        await service.submit(
            load_spec(run.spec), accept_changes=False, who="test", say=lambda _: None
        )
        yield service


@asynccontextmanager
async def watched(service: Service, audience: Audience) -> AsyncIterator[None]:
    url = f"{service.address}/runs/1/live"
    readers = [StreamReader(url, service.token, n, audience.hear) for n in range(N_VIEWERS)]
    tasks = [asyncio.create_task(reader.look()) for reader in readers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [end for end in ends if not isinstance(end, asyncio.CancelledError)] == []


def live_of(service: Service) -> LivePages:
    assert service._site is not None
    return service._site.live


async def test_a_hundred_viewers_cost_one_sheet_a_tick(
    tmp_path: Path, simulator: SimulatorThread
) -> None:
    audience = Audience()
    async with served(tmp_path, simulator) as service, watched(service, audience):
        live, recorder = live_of(service), service._machinery.recorder
        await wait_until(lambda: audience.n_events() >= 1, "a first frame for everybody")
        assert live.n_viewers == N_VIEWERS
        assert live.n_pages == 1
        await next_event(audience)
        n_sheets, n_looks = live.n_sheets, recorder.seq
        while recorder.seq < n_looks + N_TICKS:
            await next_event(audience)
            # a viewer has just heard of the newest look: its sheet is made, the next not begun
            assert live.n_sheets - n_sheets == recorder.seq - n_looks
        await assert_all_show_the_newest(service, audience)
    assert live.n_viewers == 0


async def next_event(audience: Audience) -> None:
    """Return as soon as the first viewer hears of the next look."""
    before = len(audience.seen[0])
    await wait_until(lambda: len(audience.seen[0]) > before, "the next look")


async def assert_all_show_the_newest(service: Service, audience: Audience) -> None:
    """Every viewer's page, kept by differences, is the page that a new viewer would be sent."""
    headers = {"authorization": f"Bearer {service.token}"}
    async with httpx.AsyncClient(
        base_url=service.address, headers=headers, trust_env=False, timeout=30
    ) as client:
        whole = (await client.get("/runs/1/frame")).json()
    await wait_until(lambda: audience.all_saw(whole["seq"]), "all viewers to hear of it")
    wanted = Cells(whole["html"]).texts | whole.get("texts", {})
    assert len(wanted) > 30
    for number in range(N_VIEWERS):
        shown = audience.seen[number][whole["seq"]]
        assert {name: shown[name] for name in wanted} == wanted, number
