"""The gallery: closed unless it is asked for; everything in it can be drawn, and as text only."""

from dataclasses import replace

import pytest

from app.settings import Settings
from app.web.charted import Charted
from app.web.gallery import ENTRIES
from app.web.gallery.invented import HOSTILE, NO_CHART, NOW, STATES
from app.web.overview import overview
from app.web.pages import document
from app.web.rendering import draw
from app.web.runs import runs_page
from tests.api.conftest import Door
from tests.api.home import Home
from tests.web.test_actions import somebody
from tests.web.test_overview import Elements


@pytest.mark.parametrize("name", ENTRIES)
def test_each_entry_is_drawn_and_runs_nothing(name: str) -> None:
    sheet = ENTRIES[name]()
    elements = Elements(document(sheet.title, draw(sheet.root, sheet)))
    assert "img" not in {tag for tag, _ in elements.found}
    assert not [attrs for _, attrs in elements.found if any(key.startswith("on") for key in attrs)]
    assert "hostile" not in name or HOSTILE.split(" ", 1)[0] in elements.text


@pytest.mark.parametrize(("percent", "width"), [(0, "0"), (100, "100")])
def test_a_bar_without_samples_is_as_full_as_its_words(percent: int, width: str) -> None:
    fresh = STATES["fresh"]
    parts = tuple(replace(each, percent=percent) for each in fresh.partitions)
    run = replace(fresh, percent=percent, partitions=parts)
    page = overview(run, Charted(chart=NO_CHART), "15m", [])
    assert page.attrs["all-d"]["width"] == page.attrs["p1-d"]["width"] == width
    assert runs_page([run], NOW).attrs[f"r{run.run_id}-d"]["width"] == width


async def test_it_is_closed_unless_it_is_asked_for(home: Home, door: Door) -> None:
    async with somebody(home, door) as client:
        assert (await client.get("/dev/gallery")).status_code == 404
        assert (await client.get("/dev/gallery/messages")).status_code == 404
        door.settings = Settings(dev_gallery=True)
        listed = await client.get("/dev/gallery")
        assert listed.status_code == 200
        assert all(name.split(":")[0] in listed.text for name in ENTRIES)
        assert (await client.get("/dev/gallery/messages")).status_code == 200
        assert (await client.get("/dev/gallery/nothing")).status_code == 404
