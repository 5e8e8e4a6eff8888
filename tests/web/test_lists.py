"""Activity, servers, two runs side by side: what the pages say, and what they ask the ledger."""

import json
import re
from dataclasses import asdict, replace
from datetime import timedelta

import pytest
from starlette.requests import Request

from app.core.types import RunId, ServerFacts
from app.errors import InputError, NotFoundError
from app.ledger import activity
from app.ledger.activity import Deed, Wanted
from app.ledger.servers import remember_server
from app.poller.happening import LOST
from app.web.activity import activity_kind
from app.web.compare import compare_kind
from app.web.compare.sides import by_how_much
from app.web.gallery.invented import AWAY_SERVER, HOSTILE, NOW, RUN, SERVER, UNKNOWN_SERVER
from app.web.kinds import Desk, Fresh, PageKind
from app.web.rendering import draw
from app.web.runs import runs_page
from app.web.server_page import server_kind
from app.web.server_page.cards import Told, server_page
from tests.api.conftest import Door
from tests.api.home import Home
from tests.ledger.plans import recorded, scans


@pytest.fixture
def desk(home: Home, door: Door) -> Desk:
    return Desk(ledger=home.ledger, service=door, clock=home.clock, fresh=Fresh(home.clock))


def shown(kind: PageKind, query: str = "", run: str = "1") -> str:
    """Return the page that an address leads to."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [],
        "query_string": query.encode(),
        "path_params": {"run": run},
    }
    sheet = kind.sheet(kind.key(Request(scope)))
    assert sheet is not None
    return str(draw(sheet.root, sheet))


def note(home: Home, n: int, *, who: str = "system", event: str = "tick", detail: str = "") -> None:
    """Add `n` entries, each a minute after the other."""
    deeds = [
        (Deed(who=who, event=event, detail=detail or f"number {k}", run_id=home.run_id),
         NOW + timedelta(minutes=k))
        for k in range(n)
    ]  # fmt: skip
    activity.add_all(home.ledger, deeds)


def test_activity_tells_who_from_where_what_and_to_what(home: Home, desk: Desk) -> None:
    partition = home.partition("B2_code")
    deed = Deed(
        who="Ada (command line)",
        event="concurrency",
        detail=f"B2_code: 64 -> 40 {HOSTILE}",
        run_id=home.run_id,
        partition_id=partition.id,
    )
    activity.add(home.ledger, deed, home.clock.now())
    page = shown(activity_kind(desk))
    assert '<span class="who">Ada <small>command line</small></span> <b>concurrency</b>' in page
    assert '<a href="/runs/1/p/B2_code">B2_code</a>: 64 → 40 &lt;img' in page
    assert "<img" not in page


def test_activity_is_paged_and_filters_stay(home: Home, desk: Desk) -> None:
    note(home, 250)
    note(home, 1, who="Ada (page)", event="pause", detail="needle")
    kind = activity_kind(desk)
    page = shown(kind)
    assert page.count("<li id=") == 200
    older = page.split('href="/runs/1/activity?before=')[1].split('"')[0]
    assert f'id="e{older}"' in page
    next_page = shown(kind, f"before={older}")
    assert f'id="e{older}"' not in next_page
    assert f'id="e{int(older) - 1}"' in next_page
    assert ">Newest</a>" in next_page
    found = shown(kind, "who=Ada (page)")
    assert found.count("<li id=") == 1
    assert "needle" in found
    assert "<option selected>Ada (page)</option>" in found
    nothing = shown(kind, "event=pause&partition=B2_code")
    assert "No entry matches “pause” and “B2_code”. <a" in nothing
    assert "No entry matches “B9”" in shown(kind, "partition=B9")


def test_an_address_of_an_entry_leads_to_the_page_that_holds_it(home: Home, desk: Desk) -> None:
    note(home, 450)
    kind = activity_kind(desk)
    newest = activity.latest(home.ledger, home.run_id, 1)[0].id
    for at in (newest, newest - 199, newest - 300, newest - 449):
        assert f'<li id="e{at}">' in shown(kind, f"at={at}")
    assert ">Newest</a>" not in shown(kind, f"at={newest}")  # the live page
    with pytest.raises(InputError, match='at "one" is no number of an entry'):
        shown(kind, "at=one")


def test_the_list_of_activity_walks_over_no_table(home: Home) -> None:
    with recorded(home.ledger) as asked:
        activity.listing(home.ledger, home.run_id, Wanted(who="Ada", event="pause", before=9))
        activity.filters(home.ledger, home.run_id)
        activity.page_of(home.ledger, home.run_id, 3)
    assert len(asked) >= 4
    assert scans(home.ledger, asked, "activity") == {}


def test_a_question_goes_through_a_bounded_part_and_the_next_goes_on(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(home, 1, event="needle")
    note(home, 30)
    monkeypatch.setattr(activity, "MAX_LOOKED_AT", 20)
    wanted = Wanted(event="needle")
    first = activity.listing(home.ledger, home.run_id, wanted)
    assert first.entries == ()
    assert first.older_than
    rest = activity.listing(home.ledger, home.run_id, replace(wanted, before=first.older_than))
    assert [each.event for each in rest.entries] == ["needle"]
    assert not rest.older_than


def test_a_server_says_what_it_is_and_what_happened(home: Home, desk: Desk) -> None:
    facts = ServerFacts(
        version="0.5.23",
        weight_version="v7",
        context_tokens=32_768,
        arguments={"api_key": "(removed)", "tp_size": 4},
    )
    remember_server(home.ledger, home.server_url, json.dumps(asdict(facts)), home.clock.now())
    note(home, 1, event=LOST, detail=f"{home.server_url}: connection refused")
    page = shown(server_kind(desk))
    for words in ("v7", "32,768 tokens", "2 settings", "tp_size", "(removed)"):
        assert words in page
    assert f"<b>{LOST}</b> connection refused" in page
    assert "<b>Not known:</b> all figures." in page  # nobody polls it here


def test_what_a_server_does_not_tell_is_a_dash_with_what_to_do() -> None:
    def page(*loads: object) -> str:
        sheet = server_page(replace(RUN, servers=loads), {SERVER.url: Told()})  # type: ignore[arg-type]  # loads of invented.py
        return str(draw(sheet.root, sheet))

    assert "Not known" not in page(SERVER)
    assert "Start the server with --enable-metrics." in page(UNKNOWN_SERVER)
    away = page(AWAY_SERVER)
    assert "has not answered for 4m 10s" in away
    assert "all figures. Connection refused." in away
    assert '<dd title="it was not reached yet">–</dd>' in away
    two = page(SERVER, UNKNOWN_SERVER)
    assert 'title="not every server tells its own speed"' in two


def test_two_runs_side_by_side(home: Home, desk: Desk) -> None:
    home.keep("B1_chat", 3)
    other = home.add_run("day")
    page = shown(compare_kind(desk), f"a={home.run_id}&b=day")
    assert "1 · night" in page
    assert "Settings: all the same" in page
    settings = page.split("Settings: ")[1]
    assert re.search(r"<details open><summary>\d+ are the same</summary>", settings)
    assert "Mean output, tokens" in page
    kept = page.split("Answers kept")[1].split("</tr>")[0]
    assert ">3</td>" in kept
    assert ">0</td>" in kept
    turned = shown(compare_kind(desk), f"a=day&b={home.run_id}").split("Answers kept")[1]
    assert "<b>+3</b>" in turned.split("</tr>")[0]
    mean = page.split("Mean output, tokens")[1].split("</tr>")[0]
    assert ">–</td>" in mean  # the one without answers has none, not 0
    kind = compare_kind(desk)
    assert "Choose two runs." in shown(kind)
    assert "These are the same run" in shown(kind, f"a={other}&b={other}")
    with pytest.raises(NotFoundError):
        shown(kind, "a=1&b=77")


def test_differences_are_told_where_they_say_something() -> None:
    pairs = [(200, 250), (200, 100), (200, 200.5), (0, 5), (10, 35), (None, 3)]
    assert [by_how_much(a, b) for a, b in pairs] == ["+25 %", "−50 %", "", "", "× 3.5", ""]


def test_a_run_at_work_has_a_card_and_the_rest_a_table() -> None:
    over = replace(RUN, run_id=RunId(8), state="finished", name="over")  # type: ignore[arg-type]  # a StrEnum's value
    sheet = runs_page([over, RUN], NOW)
    page = str(draw(sheet.root, sheet))
    assert page.index('<article class="tile') < page.index('href="/runs/7"') < page.index("<table")
    assert page.index("<table") < page.index('href="/runs/8"')
    assert 'action="/compare"' in page
    alone = runs_page([RUN], NOW)
    assert "/compare" not in str(draw(alone.root, alone))
