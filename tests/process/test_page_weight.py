"""What a page and its frames weigh, of a real service with ten partitions at work.

The limits are those of a slow line: a first view within 60 KB, a frame a second within 3 KB.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx
import orjson
import pytest

from tests.process.run_process import RunProcess, SimulatorProcess, wait_for
from tests.process.serving import run_of, serving, submission
from tests.stage import random_texts

NAMES = tuple(f"B{n}_partition_{n}" for n in range(10))
HTMX_BYTES = 13_403  # of htmx 4.0.1 as the CDN sends it, packed
FIRST_VIEW_BYTES, FRAME_BYTES = 60_000, 3_000
N_FRAMES = 60


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Return a client of a service whose ten partitions all have requests in flight."""
    simulator = SimulatorProcess(("--incremental", "--no-log-requests", "--time-factor", "4"))
    simulator.start()
    run = RunProcess(tmp_path_factory.mktemp("weight"), simulator.url, concurrency=40)
    for name in NAMES:
        run.write_prompts(name, random_texts(500, seed=1))
    try:
        with serving(run) as client:
            assert client.post("/runs", json=submission(run)).status_code == 201
            wait_for(lambda: all_at_work(client), "all partitions to be at work")
            yield client
    finally:
        run.close()
        simulator.kill()


def all_at_work(client: httpx.Client) -> bool:
    partitions = run_of(client)["partitions"]
    return all(each["in_flight_requests"] for each in partitions) and len(partitions) == len(NAMES)


def root_of(client: httpx.Client) -> str:
    return str(client.base_url).removesuffix("/api/v1/")


def packed_bytes(client: httpx.Client, path: str) -> int:
    """Return the bytes that come for a browser's request, as they are on the line."""
    headers = {"accept": "text/html", "accept-encoding": "gzip"}
    with client.stream("GET", root_of(client) + path, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-encoding"] == "gzip", path
        return sum(len(piece) for piece in answer.iter_raw())


@pytest.mark.slow
def test_a_first_view_is_small(service: httpx.Client) -> None:
    page = service.get(f"{root_of(service)}/runs/1", headers={"accept": "text/html"}).text
    own = re.findall(r'"(/static/[^"]+\.(?:css|js))"', page)
    assert [Path(each).name.split(".")[0] for each in own] == ["app", "boot", "app"]
    paths = ("/runs/1", *own)
    sizes = {path: packed_bytes(service, path) for path in paths}
    total = sum(sizes.values()) + HTMX_BYTES
    print(f"first view: {total:,} bytes, {sizes}")
    assert total <= FIRST_VIEW_BYTES, sizes


@pytest.mark.slow
def test_frames_are_small(service: httpx.Client) -> None:
    """Each frame is of the figures alone, but the first one and those that bring new markup."""
    address = f"{root_of(service)}/runs/1/live"
    figures: list[int] = []
    markup: list[int] = []
    for data in frames_of(service, address, N_FRAMES + 1):
        (markup if "html" in orjson.loads(data) else figures).append(len(data))
    full, *changed = markup
    print(
        f"{N_FRAMES} frames: median {median(figures):,}, most {max(figures):,} bytes; the first"
        f" {full:,}; {len(changed)} with new markup {sorted(changed)}"
    )
    assert max(figures) <= FRAME_BYTES
    assert median(figures) <= 0.8 * FRAME_BYTES
    assert len(changed) <= N_FRAMES // 6


def frames_of(client: httpx.Client, address: str, n: int) -> Iterator[str]:
    """Give the next n events of the stream, beats included: each is one tick."""
    with client.stream("GET", address) as answer:
        assert answer.status_code == 200
        lines = (line for line in answer.iter_lines() if line.startswith("data: "))
        for _ in range(n):
            yield next(lines).removeprefix("data: ")
