"""What is sent of a page: the newest, only what changed, and never more than a viewer can bear."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from app.web.frames import HORIZON_LOOKS, Differ, Frame, encode
from app.web.pacing import LONG_BYTES, LONG_REST_LOOKS, PATIENCE_LOOKS, REST_LOOKS
from app.web.sheet import Sheet
from tests.web.sketches import Viewer, cells, counter_page, draw

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
WORDS = st.text(alphabet="ab<&\"' é", max_size=4)


def differ_of(sheet: Sheet) -> Differ:
    return Differ(draw, "boot", sheet, number=1, at=NOW)


def look(differ: Differ, sheet: Sheet) -> Frame | None:
    number = differ.number + 1
    return differ.next(sheet, number=number, at=NOW + timedelta(seconds=number))


def page(
    texts: dict[str, str],
    attrs: dict[str, dict[str, str]] | None = None,
    names: tuple[str, ...] = ("a", "b"),
) -> Sheet:
    root = cells("page", [], *(cells(f"row-{name}", [name]) for name in names))
    return Sheet(root=root, title="t", texts=texts, attrs=attrs or {})


def test_only_the_cell_that_changed_is_sent() -> None:
    differ = differ_of(page({"a": "1", "b": "1"}))
    assert look(differ, page({"a": "1", "b": "2"})) == {
        "seq": "boot-2",
        "at": "2024-05-01T12:00:02.000+00:00",
        "texts": {"b": "2"},
    }
    assert look(differ, page({"a": "1", "b": "2"})) is None


def test_a_frame_is_of_the_moment_of_its_figures_not_of_the_look() -> None:
    """Figures that could not be collected anew stand; their age must be seen to grow."""
    differ = differ_of(page({"a": "1", "b": "1"}))
    old = replace(page({"a": "1", "b": "2"}), at=NOW - timedelta(seconds=9))
    frame = look(differ, old)
    assert frame is not None
    assert frame["at"] == "2024-05-01T11:59:51.000+00:00"
    assert look(differ, old) is None
    assert differ.head()["at"] == frame["at"]


def test_an_attribute_that_goes_is_sent_as_nothing_and_once() -> None:
    differ = differ_of(page({"a": "", "b": ""}, {"a": {"title": "x", "class": "y"}}))
    frame = look(differ, page({"a": "", "b": ""}, {"a": {"class": "y"}}))
    assert frame is not None
    assert frame["attrs"] == {"a": {"title": None}}
    assert look(differ, page({"a": "", "b": ""}, {"a": {"class": "y"}})) is None
    frame = look(differ, page({"a": "", "b": ""}))
    assert frame is not None
    assert frame["attrs"] == {"a": {"class": None}}


def test_a_row_whose_form_changed_is_sent_whole_and_nothing_of_it_twice() -> None:
    differ = differ_of(page({"a": "1", "b": "1"}))
    root = cells("page", [], cells("row-a", ["a", "more"]), cells("row-b", ["b"]))
    frame = look(differ, Sheet(root=root, title="t", texts={"a": "2", "b": "2", "more": "3"}))
    assert frame is not None
    assert frame["html"].count("<hx-partial") == 1
    assert 'hx-target="#row-a"' in frame["html"]
    assert frame["texts"] == {"b": "2"}


def test_a_new_row_sends_its_parent_and_not_itself_besides() -> None:
    differ = differ_of(page({"a": "1"}, names=("a",)))
    frame = look(differ, page({"a": "1", "b": "1"}))
    assert frame is not None
    assert frame["html"].count("<hx-partial") == 1
    assert 'hx-target="#page"' in frame["html"]
    assert "texts" not in frame


@st.composite
def pages(draw_from: DrawFn) -> Sheet:
    names = draw_from(st.lists(st.sampled_from("abcd"), unique=True, max_size=4))
    rows = []
    for name in names:
        more = draw_from(st.lists(st.sampled_from(["x", "y"]), unique=True))
        inner = cells(f"in-{name}", [f"{name}-{each}" for each in more])
        rows.append(cells(f"row-{name}", [name], inner, with_line=True))
    root = cells("page", ["head"], *rows)
    every = [cell for block in root.walk() for cell in _cells_of(block.about)]
    keys = st.dictionaries(st.sampled_from(["title", "width"]), WORDS)
    return Sheet(
        root=root,
        title=draw_from(WORDS),
        texts={name: draw_from(WORDS) for name in every},
        attrs={name: draw_from(keys) for name in every if draw_from(st.booleans())},
        paths={f"row-{name}-l": draw_from(WORDS) for name in names},
    )


def _cells_of(about: object) -> tuple[str, ...]:
    assert isinstance(about, tuple)
    texts: tuple[str, ...] = about[0]
    return texts


@given(st.lists(pages(), min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_who_applies_what_is_sent_has_the_newest_page_however_much_it_missed(
    sheets: list[Sheet], dice: Random
) -> None:
    differ = differ_of(sheets[0])
    every, rare = Viewer(sheets[0]), Viewer(sheets[0])
    rare_saw = 1
    for sheet in sheets[1:]:
        frame = look(differ, sheet)
        if frame:
            every.apply(frame)
        if dice.random() < 0.5:
            missed = differ.since(rare_saw)
            if missed:
                rare.apply(missed)
            rare_saw = differ.number
            assert rare.shows(sheet, with_lines=False)
        assert every.shows(sheet, with_lines=False)
        old, late = Viewer(sheets[0]), Viewer(sheet)
        old.apply(differ.full(old.structure))
        late.apply(differ.full(late.structure))
        assert old.shows(sheet)
        assert late.shows(sheet)
    for _ in range(REST_LOOKS + PATIENCE_LOOKS + 1):
        frame = look(differ, sheets[-1])
        if frame:
            every.apply(frame)
    assert every.shows(sheets[-1])


def test_the_whole_is_sent_without_markup_to_a_page_that_has_it() -> None:
    sheet = page({"a": "1", "b": "2"})
    frame = differ_of(sheet).full(sheet.structure)
    assert "html" not in frame
    assert frame["texts"] == {"a": "1", "b": "2"}
    assert 'hx-target="#page"' in differ_of(sheet).full("another")["html"]
    assert 'hx-target="#page"' in differ_of(sheet).full(None)["html"]


def test_who_missed_more_than_a_minute_is_not_known() -> None:
    differ = differ_of(counter_page(0))
    for n in range(1, HORIZON_LOOKS + 10):
        look(differ, counter_page(n))
    assert differ.knows(differ.number - HORIZON_LOOKS)
    assert not differ.knows(differ.number - HORIZON_LOOKS - 1)
    assert not differ.knows(differ.number + 1)


def busy_page(n: int, dice: Random) -> Sheet:
    """Return ten rows of a real page's size, in which everything moves."""
    texts: dict[str, str] = {}
    attrs: dict[str, dict[str, str]] = {}
    paths: dict[str, str] = {}
    rows = []
    for row in range(1, 11):
        key = f"p{row}"
        texts[f"{key}-v"] = f"{dice.random() * 10:.2f}k"
        texts[f"{key}-w"] = f"{n % 100} % · {dice.randrange(10**5):,} of 7,000 samples"
        texts[f"{key}-t"] = f"{n % 60}m"
        texts[f"{key}-n"] = f"{dice.randrange(100)} in flight"
        attrs[f"{key}-d"] = {"width": f"{dice.random() * 100:.2f}"}
        attrs[f"{key}-g"] = {"x": f"{dice.random() * 100:.2f}", "width": "1.25"}
        paths[f"{key}-l"] = "M" + "".join(f"{x} {dice.randrange(24)}L" for x in range(0, 90, 2))
        names = [name for name in texts if name.startswith(f"{key}-")]
        rows.append(cells(key, names, with_line=True))
        paths[f"{key}-l"] += "0 " * ((350 - len(paths[f"{key}-l"])) // 2)
    return Sheet(
        root=cells("page", [], *rows),
        title=f"{n} % · {n}k tok/s · night",
        texts=texts,
        attrs=attrs,
        paths=paths,
    )


def test_a_frame_of_ten_rows_stays_small_and_every_line_comes_round() -> None:
    dice = Random(7)
    differ = differ_of(busy_page(0, dice))
    sizes, line_looks = [], dict[str, list[int]]()
    for n in range(1, 121):
        frame = look(differ, busy_page(n, dice))
        assert frame is not None
        sizes.append(len(encode(frame)))
        for name in frame.get("paths", {}):
            line_looks.setdefault(name, []).append(n)
    assert max(sizes) <= 3_000
    assert sum(sizes) / len(sizes) > 1_000, "the page of this test does not move"
    assert len(line_looks) == 10
    for looks in line_looks.values():
        gaps = [later - sooner for sooner, later in pairwise(looks)]
        assert gaps
        assert min(gaps) >= REST_LOOKS
        assert max(gaps) <= REST_LOOKS + PATIENCE_LOOKS


def test_a_line_too_long_for_any_frame_goes_about_once_a_minute() -> None:
    def chart(n: int) -> Sheet:
        d = f"M{n} " + "1 " * 3_000
        return Sheet(root=cells("ch", [], with_line=True), title="t", paths={"ch-l": d})

    assert len(chart(0).paths["ch-l"]) > LONG_BYTES
    differ = differ_of(chart(0))
    sent = [n for n in range(1, 200) if look(differ, chart(n))]
    gaps = [later - sooner for sooner, later in pairwise(sent)]
    assert set(gaps) == {LONG_REST_LOOKS + PATIENCE_LOOKS}


def test_what_is_said_goes_once_with_the_next_frame() -> None:
    differ = differ_of(page({"a": "", "b": ""}))
    saw = differ.number
    differ.say("B1 has stalled")
    differ.say("the server is away")
    assert differ.since(saw) is None
    frame = look(differ, page({"a": "", "b": ""}))
    assert frame is not None
    assert frame["say"] == "B1 has stalled the server is away"
    assert look(differ, page({"a": "", "b": ""})) is None
    assert differ.since(saw) == {**frame, **differ.head()}


@pytest.mark.parametrize("name", ["onclick", "href", "src", "style", "hx-post", "srcdoc"])
def test_an_attribute_that_could_do_something_is_refused(name: str) -> None:
    differ = differ_of(page({"a": "", "b": ""}))
    with pytest.raises(ValueError, match=name):
        look(differ, page({"a": "", "b": ""}, {"a": {name: "x"}}))


def test_the_id_of_a_block_is_a_plain_word() -> None:
    differ = differ_of(page({"a": "", "b": ""}))
    root = cells("page", [], cells('row"]', ["a"]))
    with pytest.raises(ValueError, match="plain word"):
        look(differ, Sheet(root=cells('p"', [], root), title="t", texts={"a": ""}))
