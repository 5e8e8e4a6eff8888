"""What a page weighs on the wire: the first view with all its files, and every other document."""

import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.web.assets import htmx, own_assets
from app.web.gallery.invented import PARTITION, RUN, numbered
from app.web.pages import document
from tests.api.conftest import Door
from tests.api.home import Home
from tests.web.test_actions import somebody
from tests.web.test_overview import drawn

FIRST_VIEW_BYTES = 60_000
DOCUMENT_BYTES = 25_000
PAGES = (
    "/",
    "/runs/1/p/B1_chat",
    "/runs/1/chart",
    "/runs/1/failures",
    "/runs/1/failures/retry",
    "/runs/1/samples",
    "/runs/1/samples/1",
    "/runs/1/activity",
    "/runs/1/server",
    "/runs/1/stop",
    "/compare?a=1&b=2",
    "/new",
)


# what gzip makes of the pinned htmx; another version has another digest, and must be weighed anew
HTMX_BYTES = {
    "sha384-Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn": 13_368,
}


def weight(body: bytes) -> int:
    return len(gzip.compress(body, 6))


def test_the_first_view_of_ten_rows_with_all_its_files_is_light() -> None:
    run = replace(RUN, partitions=numbered(*[PARTITION] * 10))
    parts = {
        name.split(".")[0] + Path(name).suffix: weight(body)
        for name, (body, _) in own_assets().files.items()
        if name.endswith((".css", ".js"))
    }
    assert parts.keys() == {"app.css", "app.js", "boot.js"}
    parts["html"] = weight(document("x", drawn(run)).encode())
    parts["htmx"] = HTMX_BYTES[htmx().integrity]
    assert sum(parts.values()) <= FIRST_VIEW_BYTES, parts


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """More samples than a list shows, failures of several reasons, and a run to compare with."""
    made = Home(tmp_path / "home", n_samples=120)
    for word in ("boom", "timeout", "refused", "too long"):
        made.fail("B1_chat", 2, reason=f"the server answered 500: {word}")
    made.add_run("another")
    yield made
    made.ledger.close()


async def test_every_other_document_is_light(home: Home, door: Door) -> None:
    async with somebody(home, door) as client:
        for address in PAGES:
            answer = await client.get(address)
            assert answer.status_code == 200, (address, answer.text)
            assert weight(answer.content) <= DOCUMENT_BYTES, address
