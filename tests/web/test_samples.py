"""Pages of samples over a real ledger and real files: the list, the search, one sample whole."""

import re
from collections.abc import AsyncIterator
from html import unescape

import httpx
import pytest

from app.core.states import SampleState
from app.ledger import browsing
from app.web.samples import reading
from app.web.samples.asked import Asked
from tests.api.conftest import Door
from tests.api.home import Home
from tests.ledger.plans import recorded, scans
from tests.web.answered import HOSTILE, Said, answer, write_prompts
from tests.web.test_actions import HTMX, somebody

SAMPLES = "/runs/1/samples"


@pytest.fixture
async def browser(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    async with somebody(home, door) as client:
        yield client


async def shown(browser: httpx.AsyncClient, address: str) -> str:
    answered = await browser.get(address)
    assert answered.status_code == 200, answered.text
    return answered.text


def keys(markup: str) -> list[str]:
    return re.findall(r'<a class="name" href="/runs/1/samples/\d+">([^<]*)</a>', markup)


def words(markup: str) -> str:
    """Return the text of a page, without its markup."""
    return unescape(re.sub(r"<[^>]+>", "", markup))


def spaced(markup: str) -> str:
    """Return the text of a page with a space between any two cells."""
    return " ".join(words(markup.replace("<", " <")).split())


def next_of(markup: str) -> str | None:
    found = re.search(r'rel="next" href="([^"]+)"', markup)
    return unescape(found[1]) if found else None


@pytest.mark.slow
async def test_the_list_goes_through_all_partitions_to_the_end(
    browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = [f"a{n}" for n in range(10)] * 2
    monkeypatch.setattr("app.web.samples.reading.N_SHOWN", 7)
    found: list[str] = []
    address: str | None = SAMPLES
    while address:
        page = await shown(browser, address)
        found += keys(page)
        address = next_of(page)

    assert found == everything


@pytest.mark.slow
def test_a_page_that_ends_with_its_partition_goes_on_in_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "N_SHOWN", 5)
    partitions = [home.partition("B1_chat"), home.partition("B2_code")]
    asked: Asked | None = Asked()
    names = []
    while asked:
        found = reading.read_page(home.ledger, partitions, asked)
        names += [(each.partition_id, each.key) for each in found.samples]
        asked = found.next

    assert names == [(each.id, f"a{n}") for each in partitions for n in range(10)]


@pytest.mark.slow
async def test_a_window_that_ended_says_so_and_goes_on(
    browser: httpx.AsyncClient, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.keep("B1_chat", 9)
    home.keep("B1_chat", 1, state=SampleState.TRUNCATED)
    for module in (browsing, reading):
        monkeypatch.setattr(module, "WINDOW", 4, raising=False)
    monkeypatch.setattr("app.web.samples.listing.WINDOW", 4)

    page = await shown(browser, f"{SAMPLES}?state=truncated&partition=B1_chat")

    assert "Looked through the next 4 of 10 samples of B1_chat: none matches." in words(page)
    page = await shown(browser, next_of(page) or "")
    page = await shown(browser, next_of(page) or "")
    assert keys(page) == ["a9"]


async def test_a_search_finds_ids_and_records_and_says_when_nothing_matches(
    browser: httpx.AsyncClient,
) -> None:
    assert keys(await shown(browser, f"{SAMPLES}?q=a3")) == ["a3", "a3"]
    assert keys(await shown(browser, f"{SAMPLES}?q=7&partition=B2_code")) == ["a7"]
    page = await shown(browser, f"{SAMPLES}?q=<foo>")
    assert "No sample matches “<foo>”. Show all." in words(page)


@pytest.mark.slow
async def test_a_query_that_means_nothing_is_refused_by_name(browser: httpx.AsyncClient) -> None:
    for query, status, told in (
        ("state=odd", 422, 'State "odd" is none of'),
        ("after=-1x", 422, 'After "-1x" is no position'),
        ("partition=B9", 404, 'no partition "B9"'),
        (f"q={'x' * 600}", 422, "Q has 600 characters"),
    ):
        answered = await browser.get(f"{SAMPLES}?{query}")
        assert answered.status_code == status
        assert told in words(answered.text)


async def test_one_sample_shows_prompt_answer_ids_and_whose_requests_made_it(
    browser: httpx.AsyncClient, home: Home
) -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    write_prompts(home, "B1_chat", [{"id": "k", "messages": turns}, {"id": "l", "text": "go"}])
    said = Said(text="<think>so\nfar</think>\n\nBecause.", continued_at=2)
    first, second = answer(home, "B1_chat", [said, Said(text=None)])

    page = words(await shown(browser, f"{SAMPLES}/{first.sample_id}"))
    for part in ("Be brief.", "Why?", "so\nfar", "Because.", "11 12 13 2", "0 1 2 3"):
        assert part in page
    assert "it was split by text, not by token" in page
    assert f"Continued at token 2 by request rid-1 on server {home.server_url}." in page
    assert "<think>" not in page
    page = words(await shown(browser, f"{SAMPLES}/{second.sample_id}"))
    assert "The server gave no text for it; the ids below are the answer." in page


async def test_attempts_before_a_retry_are_forgiven_and_the_last_one_is_listed(
    browser: httpx.AsyncClient, home: Home
) -> None:
    home.fail("B1_chat", 1, reason="boom")
    failed = spaced(await shown(browser, f"{SAMPLES}/1"))
    await browser.post(f"{SAMPLES}/1/retry")
    answer(home, "B1_chat", [Said(text="x")] * 2)

    page = spaced(await shown(browser, f"{SAMPLES}/1"))

    assert "Attempts 1, 1 charged" in failed
    assert "Attempts 2, 0 charged, 1 forgiven" in page
    assert re.search(r"1 \d\d:\d\d 0 forgiven boom", page), page
    assert re.search(r"2 \d\d:\d\d 4 kept made the answer", page), page
    assert "Forgiven: charged before a retry" in page


@pytest.mark.slow
async def test_what_cannot_be_shown_says_why(browser: httpx.AsyncClient, home: Home) -> None:
    write_prompts(home, "B1_chat", [{"id": "k", "text": "go"}])
    (claim,) = answer(home, "B1_chat", [Said(text="x")])
    (home.output_dir / "B1_chat" / "prompts.jsonl").write_text('{"id": "k", "text": "other"}')
    next((home.output_dir / "B1_chat").glob("responses*")).unlink()

    page = words(await shown(browser, f"{SAMPLES}/{claim.sample_id}"))

    assert "record 0 is no longer this prompt" in page
    assert "Its line cannot be shown" in page
    assert "other" not in page


@pytest.mark.slow
async def test_long_texts_are_folded_and_none_is_lost(
    browser: httpx.AsyncClient, home: Home
) -> None:
    text = "".join(chr(0x4E00 + n % 5_000) for n in range(9_000))
    (claim,) = answer(home, "B1_chat", [Said(text=text)])

    page = await shown(browser, f"{SAMPLES}/{claim.sample_id}")

    shown_text, rest = text[:4_000], text[4_000:]
    assert f">{shown_text}</pre>" in page
    assert "<summary>5,000 more characters</summary><pre" in page
    assert f">{rest}</pre></details>" in page


async def test_hostile_texts_are_text_sec_01(browser: httpx.AsyncClient, home: Home) -> None:
    write_prompts(home, "B1_chat", [{"id": HOSTILE, "text": HOSTILE + "\x00\x1b[2J\u202eoof"}])
    (claim,) = answer(home, "B1_chat", [Said(text=f"{HOSTILE}</think>{HOSTILE}")])
    home.fail("B2_code", 1, reason=HOSTILE)

    for address in (
        SAMPLES,
        f"{SAMPLES}?q=%3Cimg",
        f"{SAMPLES}?partition=B2_code&state=failed",
        f"{SAMPLES}/{claim.sample_id}",
        "/runs/1/failures",
        "/runs/1/failures/retry",
    ):
        page = await shown(browser, address)
        assert "<img" not in page
        assert "<script>window" not in page
        assert "<img src=x onerror=window.__hit=1>" in words(page)
        assert "</script>49" not in words(page)
    page = await shown(browser, f"{SAMPLES}/{claim.sample_id}")
    assert "␀␛[2J⟨U+202E⟩oof" in page


@pytest.mark.slow
async def test_a_sample_is_asked_for_by_number_alone_sec_05(browser: httpx.AsyncClient) -> None:
    for wanted in ("%2e%2e%2fledger.db", "..%2f..%2fetc%2fpasswd", "1;2", "٣", "9" * 30):
        answered = await browser.get(f"{SAMPLES}/{wanted}")
        assert answered.status_code == 404
        assert "root:" not in answered.text


@pytest.mark.slow
async def test_a_line_outside_the_output_folder_is_not_shown_sec_05(
    browser: httpx.AsyncClient, home: Home
) -> None:
    (claim,) = answer(home, "B1_chat", [Said(text="secret words")])
    path = next((home.output_dir / "B1_chat").glob("responses*"))
    outside = home.folder / "elsewhere.jsonl"
    path.rename(outside)
    path.symlink_to(outside)

    page = words(await shown(browser, f"{SAMPLES}/{claim.sample_id}"))

    assert "does not lie in the output folder" in page
    assert "secret words" not in page


@pytest.mark.slow
async def test_a_failed_sample_is_tried_again_from_its_page(
    browser: httpx.AsyncClient, home: Home
) -> None:
    home.fail("B1_chat", 2, reason="boom 1")
    address = f"{SAMPLES}/1"
    page = await shown(browser, address)
    assert "boom 1" in words(page)
    assert f'action="{address}/retry"' in page

    answered = await browser.post(f"{address}/retry")
    assert (answered.status_code, answered.headers["location"]) == (303, address)
    assert home.partition("B1_chat").counts.failed == 1
    assert f'action="{address}/retry"' not in await shown(browser, address)
    again = await browser.post(f"{address}/retry", headers=HTMX)
    assert again.status_code == 409
    assert "pending" in again.text


async def test_no_page_of_samples_walks_over_the_samples(
    browser: httpx.AsyncClient, home: Home
) -> None:
    home.keep("B1_chat", 3)
    home.fail("B1_chat", 2)
    states = ["", *SampleState]
    with recorded(home.ledger) as asked:
        for state in states:
            await shown(browser, f"{SAMPLES}?state={state}")
        await shown(browser, f"{SAMPLES}?q=a1")
        await shown(browser, f"{SAMPLES}/1")
        await shown(browser, f"{SAMPLES}/4")

    for table in ("sample", "attempt", "checkpoint"):
        assert scans(home.ledger, asked, table) == {}
