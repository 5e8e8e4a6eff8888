"""The gallery: closed unless it is asked for; drawn whole, as text only, from every template."""

from dataclasses import dataclass, replace
from html import escape

import pytest

from app.settings import Settings
from app.web.charted import Charted
from app.web.gallery import ENTRIES, PAGES
from app.web.gallery.invented import HOSTILE, NO_CHART, NOW, STATES
from app.web.gallery.overviews import every_pill
from app.web.gallery.routes import address_of
from app.web.overview import overview
from app.web.pages import document
from app.web.rendering import draw, environment
from app.web.runs import runs_page
from app.web.standing import standing
from tests.api.conftest import Door
from tests.api.home import Home
from tests.web.test_actions import somebody
from tests.web.test_overview import Elements

# the list of what hangs is none of it
_NOT_HUNG = {"gallery/page.html"}


@dataclass(frozen=True)
class Hung:
    """Everything that hangs, by name, and the templates that it was drawn from."""

    pages: dict[str, str]
    templates: set[str]


@pytest.fixture(scope="module")
def hung() -> Hung:
    cache = environment().cache
    assert cache is not None
    cache.clear()  # what other tests have drawn is loaded anew
    sheets = {name: make() for name, make in ENTRIES.items()}
    pages = {name: document(one.title, draw(one.root, one)) for name, one in sheets.items()}
    pages |= {name: make(None) for name, make in PAGES.items()}
    return Hung(pages=pages, templates={name for _, name in cache})


@pytest.mark.parametrize("name", [*ENTRIES, *PAGES])
def test_each_entry_is_drawn_and_runs_nothing(hung: Hung, name: str) -> None:
    elements = Elements(hung.pages[name])
    assert "img" not in {tag for tag, _ in elements.found}
    assert not [attrs for _, attrs in elements.found if any(key.startswith("on") for key in attrs)]
    assert "hostile" not in name or HOSTILE.split(" ", 1)[0] in elements.text


def test_every_template_is_drawn_by_some_entry(hung: Hung) -> None:
    """Whoever adds a template hangs what it draws: add an entry, or a state that shows it."""
    assert set(environment().list_templates()) - hung.templates == _NOT_HUNG


def test_no_two_entries_have_a_name() -> None:
    assert not ENTRIES.keys() & PAGES.keys()


def test_every_pill_stands_in_one_overview() -> None:
    known = {standing(run, each) for run in STATES.values() for each in run.partitions}
    shown = {text for name, text in every_pill().texts.items() if name.endswith("-s")}
    assert {pill.word for pill in known} <= shown
    words = ("Slow", "Failing", "Truncated", "Degenerate", "Empty", "Mismatched")
    assert all(any(text.startswith(word) for text in shown) for word in words)


def test_a_refused_order_is_told_among_the_messages(hung: Hung) -> None:
    for name in ("control: 409, somebody was quicker", "control: 422, no such value"):
        rest = hung.pages[name].partition('<div id="toast"')[2]
        assert '<div class="toast bad">' in rest.partition("<dialog")[0]


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
        assert all(
            f'href="{escape(address_of(name))}"' in listed.text for name in (*ENTRIES, *PAGES)
        )
        for name in ("messages", "login", "sample: huge"):
            assert (await client.get(address_of(name))).status_code == 200
        assert (await client.get("/dev/gallery/nothing")).status_code == 404
