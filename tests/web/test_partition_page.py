"""The page of one partition and the table of a chart, drawn and asked for over a real ledger."""

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from app.core.spread import Measure, Spread
from app.core.states import PartitionState, RunState, SampleState
from app.core.types import PartitionId, SampleId
from app.figures import PartitionFigures, RunFigures
from app.ledger import glimpses, runs
from app.ledger.browsing import SampleEntry
from app.ledger.glimpses import Reason
from app.web.charted import Charted
from app.web.gallery.invented import (
    AWAY_SERVER,
    BUDGETED,
    CHART,
    FINISHED,
    HOSTILE,
    NOW,
    PARTITION,
    PAUSED,
    RUN,
    SCANNING,
    SERVER,
    hostile_run,
)
from app.web.pages import document
from app.web.partition.page import partition_page
from app.web.partition.reads import Read
from app.web.partition.standstill import standstill
from app.web.rendering import draw
from app.web.sheet import Sheet
from tests.api.conftest import Door
from tests.api.home import Home
from tests.ledger.plans import recorded, scans
from tests.web.test_actions import somebody
from tests.web.test_overview import Elements

ENTRY = SampleEntry(
    id=SampleId(9),
    partition_id=PartitionId(1),
    key=HOSTILE,
    position=9,
    index=9,
    replica=0,
    state=SampleState.TRUNCATED,
    prompt_tokens=4,
    output_tokens=1_234,
    held_tokens=0,
    attempt=2,
    charged=0,
    finish_reason='{"type":"length"}',
    flags=(),
    reason=None,
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Read:
    home = Home(tmp_path_factory.mktemp("known") / "home")
    view, spec = home.partition("B1_chat"), home.spec("night")
    home.ledger.close()
    return Read(
        view=view,
        spec=spec,
        samples=[ENTRY],
        reasons=[Reason(state="failed", reason=HOSTILE, n=7)],
        spreads={
            Measure.OUTPUT: Spread.of([500, 900, 10_240]),
            Measure.OUTPUT_CUT: Spread.of([10_240]),
            Measure.LATENCY: Spread.of([20_000, 30_000]),
        },
        hours={Measure.LATENCY: [(0, Spread.of([1_000])), (7_200_000, Spread.of([9_000]))]},
    )


def sheet_of(known: Read, partition: PartitionFigures, run: RunFigures = RUN) -> Sheet:
    whole = replace(run, partitions=(partition,))
    return partition_page(whole, partition, known, Charted(chart=CHART), "6h")


@pytest.mark.parametrize(
    "partition", [PARTITION, FINISHED, PAUSED, BUDGETED, SCANNING], ids=lambda each: each.percent
)
def test_every_cell_has_its_element_and_every_id_stands_once(
    known: Read, partition: PartitionFigures
) -> None:
    sheet = sheet_of(known, partition)
    ids = Elements(str(draw(sheet.root, sheet))).ids
    assert not [name for name, n in Counter(ids).items() if n > 1]
    cells = {*sheet.texts, *sheet.attrs, *sheet.paths} - set(ids)
    assert {name for name in cells if not re.match(r"p\d+-", name)} == set()  # controls not offered


def test_sec_01_names_reasons_and_ids_from_elsewhere_are_text(known: Read) -> None:
    run = hostile_run()
    sheet = sheet_of(known, run.partitions[0], run)
    elements = Elements(document("x", draw(sheet.root, sheet)))
    assert "img" not in {tag for tag, _ in elements.found}
    for tag, attrs in elements.found:
        assert "style" not in attrs
        assert tag != "script" or attrs.get("src")
        assert not any(name.startswith("on") for name in attrs)
        assert not re.search(r"[<>\"' ]", attrs.get("href") or "")
    assert HOSTILE in elements.text


def test_two_bars_and_what_became_of_the_samples(known: Read) -> None:
    sheet = sheet_of(known, replace(BUDGETED, counts=replace(BUDGETED.counts, failed=37)))
    assert (sheet.texts["pp-n"], sheet.texts["pp-of"]) == ("4,212", "of 10,313")
    assert sheet.texts["pp-how"] == "64 in flight · 12 truncated · 37 failed"
    assert sheet.texts["pp-tof"] == "of 10M"
    assert sheet.attrs["pp-td"] == {"width": "62.9"}
    assert sheet.texts["len-says"].endswith("33.3 % cut at the limit of 10,240")


def test_what_is_not_measured_is_a_dash_with_its_reason(known: Read) -> None:
    sheet = sheet_of(replace(known, spreads={}, hours={}), SCANNING)
    for cell in ("tm-first-token", "tm-latency", "tm-prompt"):
        assert sheet.texts[cell] == "–"
        assert sheet.attrs[cell]["title"]
    assert sheet.texts["len-says"].startswith("no answer has ended")


def test_reasons_that_differ_in_numbers_are_one_that_leads_to_its_group(known: Read) -> None:
    timeouts = [Reason(state="failed", reason=f"no answer within {n} s", n=n) for n in (3, 600, 90)]
    sheet = sheet_of(replace(known, reasons=timeouts), PARTITION)
    (block,) = [each for each in sheet.root.children if each.id == "pfails"]
    markup = str(draw(block, sheet))
    assert ">693</b> failed: no answer within # s" in markup
    assert markup.count("group=") == 1


def test_hours_without_an_answer_are_a_gap_in_the_line(known: Read) -> None:
    sheet = sheet_of(known, PARTITION)
    assert sheet.paths["tm-latency-m"].count("M") == 2
    assert "l" not in sheet.paths["tm-latency-m"]  # two hours are two levels, not a line
    assert "tm-first-token-m" not in sheet.paths


def test_why_nothing_comes_is_what_is_seen() -> None:
    silent = replace(PARTITION, last_token_at=NOW - timedelta(minutes=14))
    run = replace(RUN, partitions=(silent,), servers=(SERVER,))

    assert standstill(run, PARTITION) == ""
    assert standstill(run, silent) == (
        "64 requests are in flight, newest token 14m ago."
        " SGLang answers; it runs 241 requests, its queue holds 182."
    )
    assert standstill(replace(run, servers=(AWAY_SERVER,)), silent).endswith(
        "SGLang has not answered for 4m 10s."
    )
    idle = replace(PARTITION, n_in_flight=0)
    assert "others use the concurrency" in standstill(run, replace(idle, concurrency_requests=0))
    assert "has not begun" in standstill(run, replace(idle, concurrency_requests=None))
    assert standstill(run, replace(idle, state=PartitionState.PAUSED)) == ""
    assert standstill(replace(run, state=RunState.PAUSED), silent) == ""


async def test_the_page_is_served_with_what_the_ledger_knows(home: Home, door: Door) -> None:
    home.keep("B1_chat", 3, tokens=70)
    home.fail("B1_chat", 2)
    async with somebody(home, door) as browser:
        page = await browser.get(f"/runs/{home.run_id}/p/B1_chat?range=1h")
        moved = await browser.get(f"/runs/{home.run_id}/p/B1_chat/frame?range=1h")
        table = await browser.get(f"/runs/{home.run_id}/chart?partition=B1_chat")
        of_run = await browser.get(f"/runs/{home.run_id}/chart")
        nobody = await browser.get(f"/runs/{home.run_id}/p/B9")
        elsewhere = await browser.get("/runs/99/p/B1_chat")
    assert page.status_code == moved.status_code == of_run.status_code == 200
    assert "500 boom" in page.text
    assert "64 – 127" in table.text
    assert '<td class="n num">12</td>' in table.text
    assert elsewhere.status_code == 404
    assert (nobody.status_code, "It has B1_chat, B2_code" in nobody.text) == (404, True)


async def test_the_page_asks_for_no_walk_over_the_samples(home: Home, door: Door) -> None:
    home.keep("B1_chat", 3)
    home.fail("B1_chat", 2)
    async with somebody(home, door) as browser:
        with recorded(home.ledger) as asked:
            for path in ("", "/p/B1_chat", "/chart?partition=B1_chat"):
                await browser.get(f"/runs/{home.run_id}{path}")
    assert any("FROM measure" in each.statement for each in asked)
    for table in ("sample", "activity", "measure"):
        assert scans(home.ledger, asked, table) == {}


def test_the_answers_furthest_on_and_the_commonest_reasons_come_first(home: Home) -> None:
    home.keep("B1_chat", 4)
    home.fail("B1_chat", 1, reason="once")
    home.fail("B1_chat", 2, reason="twice")
    partition_id = runs.partitions_of(home.ledger, home.run_id)[0].id
    assert [each.key for each in glimpses.furthest(home.ledger, partition_id, 2)] == ["a3", "a2"]
    found = glimpses.reasons(home.ledger, partition_id, 8)
    assert [(each.reason, each.n) for each in found] == [("twice", 2), ("once", 1)]
