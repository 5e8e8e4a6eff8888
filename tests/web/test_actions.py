"""What the page's forms do, posted without script and as htmx posts them, over a real ledger."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from app.api import create_app
from app.clock import SystemClock
from app.core.states import PartitionState, RunState
from app.gate import Keys, allowed_hosts
from app.ledger import activity
from app.notifying import Told
from app.web.site import Site
from tests.api.conftest import PORT, TOKEN, Door
from tests.api.cut_short import cut_short
from tests.api.home import Home
from tests.ledger.plans import recorded, scans

ORIGIN = f"http://127.0.0.1:{PORT}"
HTMX = {"hx-request": "true"}
VIEW_TOKEN = "a-key-to-look-through"  # noqa: S105 - of these tests alone


@asynccontextmanager
async def somebody(home: Home, door: Door, token: str = TOKEN) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a browser that has logged in as anna; also for the forms of other files."""
    async with _stranger(home, door) as client:
        answer = await client.post("/login", data={"token": token, "name": "anna"})
        assert answer.status_code == 303
        yield client


@pytest.fixture
async def anybody(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    """Return a browser's requests without a session."""
    async with _stranger(home, door) as client:
        yield client


@asynccontextmanager
async def _stranger(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    clock = SystemClock()
    keys = Keys(TOKEN, is_open_to_own_user=False, port=PORT, clock=clock, view_token=VIEW_TOKEN)
    site = Site(home.ledger, door, keys, clock)
    app = create_app(
        home.ledger, door, keys, allowed_hosts("127.0.0.1", PORT), clock=clock, pages=site.pages
    )
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    headers = {"origin": ORIGIN, "accept": "text/html"}
    async with httpx.AsyncClient(
        transport=transport, base_url=ORIGIN, trust_env=False, headers=headers
    ) as client:
        yield client


@pytest.fixture
async def browser(anybody: httpx.AsyncClient) -> httpx.AsyncClient:
    """Return a browser that has logged in as anna."""
    answer = await anybody.post("/login", data={"token": TOKEN, "name": "anna"})
    assert answer.status_code == 303
    return anybody


def at(home: Home, name: str = "B1_chat") -> str:
    return f"/runs/{home.run_id}/p/{home.partition(name).id}"


async def test_a_plain_form_pauses_and_goes_back_to_the_page(
    home: Home, door: Door, browser: httpx.AsyncClient
) -> None:
    answer = await browser.post(f"{at(home)}/pause")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{home.run_id}")
    assert home.partition("B1_chat").state is PartitionState.PAUSED
    assert door.n_pokes == 1
    newest = activity.latest(home.ledger, home.run_id, 1)[0]
    assert newest.who == "anna (page)"


async def test_htmx_gets_a_message_that_can_be_taken_back(
    home: Home, browser: httpx.AsyncClient
) -> None:
    answer = await browser.post(f"{at(home)}/pause", headers=HTMX)
    assert answer.status_code == 200
    assert 'hx-target="#toast"' in answer.text
    assert f'hx-post="{at(home)}/resume?undo=1"' in answer.text
    await browser.post(f"{at(home)}/resume", headers=HTMX)
    assert home.partition("B1_chat").state is PartitionState.ACTIVE


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"requests": "24"}, 24),
        ({"requests": " 1,024 "}, 1024),
        ({"requests": "24", "delta": "1"}, 28),
        ({"requests": "24", "delta": "-1"}, 20),
        ({"requests": "16", "delta": "-1"}, 15),
        ({"requests": "1", "delta": "-1"}, 1),
    ],
)
async def test_concurrency_is_typed_or_stepped(
    home: Home, browser: httpx.AsyncClient, fields: dict[str, str], wanted: int
) -> None:
    answer = await browser.post(f"{at(home)}/concurrency", data=fields)
    assert answer.status_code == 303
    assert home.partition("B1_chat").own_concurrency == wanted


async def test_an_undone_concurrency_is_what_it_was(home: Home, browser: httpx.AsyncClient) -> None:
    first = await browser.post(f"{at(home)}/concurrency", data={"requests": "24"}, headers=HTMX)
    assert 'name="share" value="1"' in first.text
    second = await browser.post(f"{at(home)}/concurrency", data={"requests": "30"}, headers=HTMX)
    assert 'name="requests" value="24"' in second.text
    await browser.post(f"{at(home)}/concurrency", data={"share": "1"}, headers=HTMX)
    assert home.partition("B1_chat").own_concurrency is None


@pytest.mark.parametrize(
    "typed", ["0", "-3", "many", "10001", "", "1e3", "٣", "--5", "+-3", "9" * 5000]
)
async def test_a_bad_number_changes_nothing_and_says_why(
    home: Home, browser: httpx.AsyncClient, typed: str
) -> None:
    answer = await browser.post(f"{at(home)}/concurrency", data={"requests": typed}, headers=HTMX)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]
    assert home.partition("B1_chat").own_concurrency is None


async def test_a_refused_order_of_a_plain_form_is_a_page(
    home: Home, browser: httpx.AsyncClient
) -> None:
    await browser.post(f"{at(home)}/pause")
    again = await browser.post(f"{at(home)}/pause")
    assert again.status_code == 409
    assert again.headers["content-type"].startswith("text/html")
    assert "B1_chat is paused" in again.text


async def test_the_run_is_paused_resumed_and_stopped(
    home: Home, browser: httpx.AsyncClient
) -> None:
    for verb, state in (
        ("pause", RunState.PAUSED),
        ("resume", RunState.RUNNING),
        ("stop", RunState.STOPPING),
    ):
        assert (await browser.post(f"/runs/{home.run_id}/{verb}")).status_code == 303
        assert home.run.state is state


async def test_finish_what_runs_then_stop_drains_first(
    home: Home, browser: httpx.AsyncClient
) -> None:
    await browser.post(f"/runs/{home.run_id}/stop", data={"finish": "1"})
    assert home.run.state is RunState.STOPPING
    assert home.partition("B1_chat").state is PartitionState.DRAINING


async def test_stopping_is_asked_on_a_page_of_its_own_without_script(
    home: Home, browser: httpx.AsyncClient
) -> None:
    page = await browser.get(f"/runs/{home.run_id}/stop")
    assert page.status_code == 200
    assert home.run.state is RunState.RUNNING
    assert 'name="finish"' in page.text


@pytest.mark.parametrize("verb", ["delete", "stop", "retry"])
async def test_an_order_that_there_is_not_is_not_found(
    home: Home, browser: httpx.AsyncClient, verb: str
) -> None:
    assert (await browser.post(f"{at(home)}/{verb}")).status_code == 404


@pytest.mark.parametrize("number", ["0", "99", str(2**63), "9" * 5000, "-1", "x"])
@pytest.mark.parametrize(
    "path",
    [
        "p/{}/deadline", "p/{}/budget", "p/{}/goal", "p/{}/concurrency", "p/{}/extend",
        "p/{}/pause",
    ],
)  # fmt: skip
async def test_a_number_that_no_partition_has_is_not_found(
    home: Home, browser: httpx.AsyncClient, path: str, number: str
) -> None:
    data = {"deadline": "+6h", "tokens": "1M", "samples": "5", "requests": "5",
            "max_new_tokens": "200"}  # fmt: skip
    answer = await browser.post(f"/runs/{home.run_id}/{path.format(number)}", data=data)
    assert answer.status_code == 404


@pytest.mark.parametrize("number", [str(2**63), "9" * 5000])
@pytest.mark.parametrize("path", ["", "/live", "/frame", "/stop", "/budget", "/pause"])
async def test_a_number_that_no_run_has_is_not_found(
    browser: httpx.AsyncClient, path: str, number: str
) -> None:
    is_order = path in ("/budget", "/pause")
    ask = browser.post if is_order else browser.get
    assert (await ask(f"/runs/{number}{path}")).status_code == 404


async def test_a_run_that_there_is_not_names_those_that_there_are(
    home: Home, browser: httpx.AsyncClient
) -> None:
    answered = await browser.get("/runs/99")

    assert "<h2>There is no run 99</h2>" in answered.text
    assert '<a href="/runs/1">1 · night</a>' in answered.text
    assert str(home.ledger.path) not in answered.text


async def test_a_partition_of_another_run_is_not_found(
    home: Home, browser: httpx.AsyncClient
) -> None:
    other = home.add_run("other")
    elsewhere = f"/runs/{other}/p/{home.partition('B1_chat').id}/pause"
    assert (await browser.post(elsewhere)).status_code == 404
    assert home.partition("B1_chat").state is PartitionState.ACTIVE


async def test_sec_03_a_form_of_another_site_changes_nothing(
    home: Home, browser: httpx.AsyncClient
) -> None:
    for headers in ({"origin": "http://evil.example"}, {"origin": ""}):
        answer = await browser.post(f"{at(home)}/pause", headers=headers)
        assert answer.status_code == 403
    for path in (f"{at(home)}/pause", f"/runs/{home.run_id}/pause"):
        assert (await browser.get(path)).status_code in (404, 405)
    assert home.partition("B1_chat").state is PartitionState.ACTIVE


async def test_nobody_sees_or_does_anything_without_logging_in(
    home: Home, anybody: httpx.AsyncClient
) -> None:
    page = await anybody.get(f"/runs/{home.run_id}")
    assert page.status_code == 303
    assert page.headers["location"].startswith("/login")
    posted = await anybody.post(f"{at(home)}/pause", headers=HTMX)
    assert posted.status_code == 401
    assert home.partition("B1_chat").state is PartitionState.ACTIVE


async def test_the_pages_name_what_they_show(home: Home, browser: httpx.AsyncClient) -> None:
    home.keep("B1_chat", 3)
    page = await browser.get(f"/runs/{home.run_id}?range=24h")
    assert page.status_code == 200
    assert "B1_chat" in page.text
    assert "3 of 10 samples" in page.text
    assert f'data-live="/runs/{home.run_id}/live?range=24h"' in page.text
    by_name = await browser.get("/runs/night")
    assert by_name.status_code == 200
    listed = await browser.get("/")
    assert f'href="/runs/{home.run_id}"' in listed.text
    missing = await browser.get("/runs/99")
    assert missing.status_code == 404
    assert "no run" in missing.text


async def test_no_page_scans_the_samples(home: Home, browser: httpx.AsyncClient) -> None:
    home.keep("B1_chat", 3)
    with recorded(home.ledger) as asked:
        for path in ("/", f"/runs/{home.run_id}", f"/runs/{home.run_id}?range=all"):
            assert (await browser.get(path)).status_code == 200
            frame = path.split("?")[0].rstrip("/") or "/runs"
            assert (await browser.get(f"{frame}/frame")).status_code == 200
    assert asked
    assert not scans(home.ledger, asked)


async def test_a_test_message_is_sent_by_a_button_and_answered_in_words(
    door: Door, browser: httpx.AsyncClient
) -> None:
    door.told = (
        Told(target="webhook hooks.example", is_ok=True, said="HTTP 200"),
        Told(target="command tell.sh", is_ok=False, said="exit code 3"),
    )
    listed = await browser.get("/")
    assert 'action="/notify-test"' in listed.text
    assert "webhook hooks.example and command tell.sh" in listed.text
    toast = await browser.post("/notify-test", headers=HTMX)
    plain = await browser.post("/notify-test")
    assert 'hx-target="#toast"' in toast.text
    assert plain.text.startswith("<!doctype html>")
    for answer in (toast, plain):
        assert answer.status_code == 200
        assert "webhook hooks.example: delivered, HTTP 200" in answer.text
        assert "command tell.sh: not delivered, exit code 3" in answer.text
    assert door.testers == ["anna (page)"] * 2


async def test_without_a_target_the_page_says_how_to_set_one(
    door: Door, browser: httpx.AsyncClient, anybody: httpx.AsyncClient
) -> None:
    listed = await browser.get("/")
    assert 'action="/notify-test"' not in listed.text
    assert "LONGWATCH_NOTIFY_URL" in listed.text
    assert (await browser.post("/notify-test")).status_code == 409
    assert (await browser.get("/notify-test")).status_code in (404, 405)
    foreign = await browser.post("/notify-test", headers={"origin": "http://evil.example"})
    assert foreign.status_code == 403
    assert door.testers == []


async def test_a_plain_form_extends_and_goes_back_to_the_page(
    home: Home, door: Door, browser: httpx.AsyncClient
) -> None:
    cut_short(home, n=2)
    shown = (await browser.get(f"/runs/{home.run_id}")).text
    assert f'action="{at(home)}/extend"' in shown
    assert f'action="{at(home, "B2_code")}/extend"' not in shown
    answer = await browser.post(f"{at(home)}/extend", data={"max_new_tokens": " 2,000 "})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{home.run_id}")
    assert home.partition("B1_chat").max_new_tokens == 2_000
    assert home.partition("B1_chat").counts.truncated == 0
    assert door.n_pokes == 1


async def test_htmx_is_told_what_goes_on_and_what_stays(
    home: Home, browser: httpx.AsyncClient
) -> None:
    cut_short(home, n=2)
    cut_short(home, n=1, gen_id="gen-old")
    data = {"max_new_tokens": "200"}
    answer = await browser.post(f"{at(home)}/extend", data=data, headers=HTMX)
    assert answer.status_code == 200
    assert "2 truncated answers of B1_chat go on up to 200 tokens" in answer.text
    assert "1 made under other settings" in answer.text
    assert "hx-post" not in answer.text  # it cannot be taken back


@pytest.mark.parametrize("typed", ["", "0", "50", "-1", "many", "10000001", "1e3"])
async def test_a_bad_length_changes_nothing_and_says_why(
    home: Home, door: Door, browser: httpx.AsyncClient, typed: str
) -> None:
    cut_short(home, n=2)
    before = home.partition("B1_chat")
    data = {"max_new_tokens": typed}
    answer = await browser.post(f"{at(home)}/extend", data=data, headers=HTMX)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]
    assert home.partition("B1_chat") == before
    assert door.n_pokes == 0
