"""Reasoning and answer of a sample's page: told apart by ids, or not at all."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from app.core.spec import RunSpec, to_json
from tests.api.conftest import Door
from tests.api.home import Home
from tests.web.answered import Said, answer, write_prompts
from tests.web.test_actions import somebody
from tests.web.test_samples import SAMPLES, shown, words

# The ids of `write_prompts` are 0 1 2 3, 4 5 6 7, ...: the first prompt ends with the opening mark.
OPEN, CLOSE = 3, 9
OPENED_BY_PROMPT, PLAIN = 0, 1
BY_TEXT = "it was split by text, not by token"


@pytest.fixture
async def browser(home: Home, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    async with somebody(home, door) as client:
        yield client


def know_marks(home: Home) -> None:
    spec: RunSpec = replace(
        home.spec(home.run_name), think_open_ids=(OPEN,), think_close_ids=(CLOSE,)
    )
    with home.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE run SET spec_json = ?", (to_json(spec),))


async def page_of(browser: httpx.AsyncClient, home: Home, place: int, said: Said) -> str:
    write_prompts(home, "B1_chat", [{"id": f"k{n}", "text": "go"} for n in range(2)])
    before = [Said(text="other")] * place
    claims = answer(home, "B1_chat", [*before, said])
    return words(await shown(browser, f"{SAMPLES}/{claims[-1].sample_id}"))


@pytest.mark.parametrize(
    ("place", "said", "seen", "unseen"),
    [
        (
            OPENED_BY_PROMPT,
            Said(text="so</think>\n\nBecause.", ids=(11, 12, CLOSE, 13)),
            ("Closed by token 2 of the answer.", "Because."),
            ("</think>", BY_TEXT),
        ),
        (
            PLAIN,
            Said(text="<think>so</think>Because.", ids=(OPEN, 12, CLOSE, 13)),
            ("Closed by token 2 of the answer.", "Because."),
            ("<think>", "</think>", BY_TEXT),
        ),
        (
            OPENED_BY_PROMPT,
            Said(text="so</think>far", ids=(11, 12, 13, 14)),
            ("The reasoning was never closed; there is no answer.", "so</think>far"),
            (BY_TEXT,),
        ),
        (
            PLAIN,
            Said(text="say</think>it", ids=(11, 12, 13, 14)),
            ("say</think>it",),
            ("The reasoning", BY_TEXT),
        ),
        (
            OPENED_BY_PROMPT,
            Said(text="a</think>b</think>c", ids=(11, CLOSE, 12, 13)),
            ("ends at token 1, but </think> stands 2 times", "a</think>b</think>c"),
            (BY_TEXT,),
        ),
        (
            OPENED_BY_PROMPT,
            Said(text="soBecause.", ids=(11, CLOSE, 12, 13)),
            ("ends at token 1, but </think> stands not at all", "soBecause."),
            (BY_TEXT,),
        ),
    ],
    ids=["by_prompt", "by_answer", "never_closed", "no_thinking", "twice", "mark_not_in_text"],
)
async def test_ids_decide_what_is_reasoning(
    browser: httpx.AsyncClient,
    home: Home,
    place: int,
    said: Said,
    seen: tuple[str, ...],
    unseen: tuple[str, ...],
) -> None:
    know_marks(home)

    page = await page_of(browser, home, place, said)

    assert [part for part in seen if part not in page] == []
    assert [part for part in unseen if part in page] == []


async def test_without_marks_the_line_tells_and_an_older_one_is_split_by_its_text(
    browser: httpx.AsyncClient, home: Home
) -> None:
    write_prompts(home, "B1_chat", [{"id": f"k{n}", "text": "go"} for n in range(3)])
    told, older, twice = answer(
        home,
        "B1_chat",
        [
            Said(text="so</think>Because.", reasoning_end=1),
            Said(text="so</think>Because."),
            Said(text="a</think>b</think>c"),
        ],
    )

    page = words(await shown(browser, f"{SAMPLES}/{told.sample_id}"))
    assert "Closed by token 1 of the answer." in page
    assert BY_TEXT in words(await shown(browser, f"{SAMPLES}/{older.sample_id}"))
    page = words(await shown(browser, f"{SAMPLES}/{twice.sample_id}"))
    assert "</think> stands 2 times in the text, so the text is not split." in page
    assert "a</think>b</think>c" in page
