"""The overview and the list of runs, drawn from invented figures of every state."""

import gzip
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markupsafe import Markup

from app.core.states import PartitionState, RunState
from app.core.types import Counts
from app.figures import RunFigures
from app.web.charted import Charted
from app.web.frames import Differ
from app.web.gallery.invented import (
    CHART,
    HOSTILE,
    NO_CHART,
    NOW,
    PARTITION,
    RUN,
    STATES,
    entry,
    numbered,
)
from app.web.overview import overview
from app.web.pages import document
from app.web.rendering import draw
from app.web.runs import runs_page
from app.web.sheet import Sheet


class Elements(HTMLParser):
    """All elements of a page with their attributes, and the text directly after each tag."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(str(markup))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def ids(self) -> list[str]:
        return [attrs["id"] or "" for _, attrs in self.found if "id" in attrs]


def sheet_of(run: RunFigures) -> Sheet:
    return overview(run, Charted(chart=CHART), "6h", [entry(n) for n in range(3)])


def drawn(run: RunFigures) -> Markup:
    sheet = sheet_of(run)
    return draw(sheet.root, sheet)


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_drawn_and_each_id_stands_once(state: str) -> None:
    elements = Elements(drawn(STATES[state]))
    repeated = [name for name, n in Counter(elements.ids).items() if n > 1]
    assert not repeated


@pytest.mark.parametrize("state", STATES)
def test_every_cell_of_the_sheet_has_its_element(state: str) -> None:
    sheet = sheet_of(STATES[state])
    ids = set(Elements(str(draw(sheet.root, sheet))).ids)
    hidden = re.compile(r"(p\d+-(c|k|x)|s\d+-(use|run|hit)[mb]?|need-\d)$")
    missing = {name for name in (*sheet.texts, *sheet.attrs, *sheet.paths) if name not in ids}
    assert not {name for name in missing if not hidden.match(name)}


def test_sec_01_text_from_elsewhere_is_text() -> None:
    page = document("x", drawn(STATES["hostile"]))
    elements = Elements(page)
    assert "img" not in {tag for tag, _ in elements.found}
    assert not [attrs for _, attrs in elements.found if any(k.startswith("on") for k in attrs)]
    assert HOSTILE in elements.text
    assert "49" not in elements.text.replace("6.49M", "")


def test_no_inline_script_or_style_anywhere() -> None:
    for run in STATES.values():
        for tag, attrs in Elements(document("x", drawn(run))).found:
            assert "style" not in attrs
            assert tag != "style"
            assert tag != "script" or attrs.get("src")


def test_a_control_is_offered_only_where_it_can_work() -> None:
    def verbs(run: RunFigures) -> set[str]:
        posts = [
            attrs["action"] or ""
            for tag, attrs in Elements(drawn(run)).found
            if tag == "form" and "action" in attrs
        ]
        return {post.rsplit("/", 1)[1] for post in posts if "/p/" in post}

    def one(**changes: object) -> RunFigures:
        return replace(RUN, partitions=numbered(replace(PARTITION, **changes)))  # type: ignore[arg-type]  # fields by name

    extend, limits = {"extend"}, {"budget", "goal"}
    always = {"concurrency", "deadline"} | limits | extend
    assert verbs(one()) == {"pause", "drain"} | always
    assert verbs(one(state=PartitionState.PAUSED)) == {"resume"} | always
    assert verbs(one(state=PartitionState.DRAINING)) == {"resume", "pause"} | always
    assert verbs(one(is_over=True)) == extend | limits  # samples are left: a limit has ended it
    assert verbs(one(is_over=True, counts=Counts(truncated=3))) == extend
    assert verbs(one(is_over=True, counts=Counts(ok=3))) == set()
    assert verbs(one(is_over=True, counts=Counts(truncated=3), intake="scanned")) == set()
    assert verbs(replace(one(), state=RunState.STOPPED)) == extend | limits
    assert verbs(replace(one(is_over=True, counts=Counts(ok=3)), state=RunState.FINISHED)) == set()
    assert verbs(replace(one(), state=RunState.STOPPING)) == set()


def test_what_needs_a_person_stands_first() -> None:
    stalled = STATES["stalled"]
    names = [
        attrs["data-name"]
        for tag, attrs in Elements(drawn(stalled)).found
        if tag == "tr" and "data-name" in attrs
    ]
    waiting = [
        each.name
        for each in stalled.partitions
        if each.n_in_flight and each.state is PartitionState.ACTIVE and not each.is_over
    ]
    assert names[: len(waiting)] == waiting


def test_srv_21_what_a_server_does_not_tell_is_no_zero() -> None:
    sheet = sheet_of(STATES["server tells nothing"])
    for name in ("run", "wait", "tps", "hit", "ttft", "retr"):
        assert sheet.texts[f"s0-{name}"] == "–"
        assert "not available" in sheet.attrs[f"s0-{name}"]["title"]
    assert sheet.texts["s0-kv"] == "–"


def test_unknown_speed_and_end_are_dashes_with_the_reason() -> None:
    sheet = sheet_of(STATES["fresh"])
    assert sheet.texts["speed"] == "–"
    assert sheet.texts["end"] == "–"
    assert sheet.texts["end-why"] == "estimating: 0 of 5 answers have ended"


def test_structure_does_not_change_with_figures_alone() -> None:
    later = replace(
        RUN,
        percent=61,
        speed_tokens_per_s=15_000.0,
        partitions=tuple(
            replace(
                each,
                n_in_flight=each.n_in_flight + 1 if each.n_in_flight else 0,
                percent=min(99, each.percent + 1) if not each.is_over else 100,
            )
            for each in RUN.partitions
        ),
    )
    assert sheet_of(later).structure == sheet_of(RUN).structure
    assert sheet_of(later).texts != sheet_of(RUN).texts


def test_the_first_view_of_ten_rows_is_light() -> None:
    run = replace(RUN, partitions=numbered(*[PARTITION] * 10))
    assert len(gzip.compress(document("x", drawn(run)).encode(), 6)) < 25_000


def test_the_list_of_runs_and_its_empty_state() -> None:
    listed = [replace(RUN, run_id=type(RUN.run_id)(n)) for n in (1, 2)]
    finished = replace(STATES["finished"], run_id=type(RUN.run_id)(3))
    sheet = runs_page([finished, *listed], NOW)
    links = [
        attrs["href"] for tag, attrs in Elements(str(draw(sheet.root, sheet))).found if tag == "a"
    ]
    assert links == ["/new", "/runs/2", "/runs/1", "/runs/3"]
    empty = runs_page([], NOW)
    assert "No run yet" in str(draw(empty.root, empty))


def test_a_chart_without_points_says_so() -> None:
    sheet = overview(RUN, Charted(chart=NO_CHART), "15m", [])
    assert sheet.texts["ch-out"] == "nothing recorded yet"
    assert sheet.attrs["ch-box"]["aria-valuetext"] == "nothing recorded yet"
    assert sheet.paths["ch-own"] == ""


def test_a_state_that_begins_is_spoken_once() -> None:
    calm, away = sheet_of(RUN), sheet_of(STATES["server away"])
    differ = Differ(draw, "boot", calm, number=1, at=NOW)
    began = differ.next(away, number=2, at=NOW)
    assert began is not None
    assert "Something is to be looked at." in began["say"]
    assert "B1_part: waiting for server." in began["say"]
    later = differ.next(replace(away, title="other"), number=3, at=NOW)
    assert later is not None
    assert "say" not in later
