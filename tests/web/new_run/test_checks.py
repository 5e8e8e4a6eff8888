"""What the check of a new run finds, and that one check starts one run."""

import asyncio
from threading import Event

import httpx
import pytest

from app.clock import SystemClock
from app.core.spec_parse import parse_spec
from app.submission import check
from app.submission.checking import AbandonedError
from app.web.new_run import Checks
from app.web.new_run.review import review
from app.web.rendering import draw
from tests.waiting import wait_until
from tests.web.new_run.desk import PromptDesk, chat, reviewed, text_of


async def test_the_review_counts_what_the_files_hold(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:
    rows = [chat(f"b{n}", "x" * 40) for n in range(40)]
    desk.write("night/B2_code.jsonl", [*rows[:30], '{"id": "torn"', "[1]", *rows[30:]])
    form = desk.form(
        partition=["B1_chat", "B2_code"],
        samples_per_prompt="2",
        **{"B2_code:class": "long", "B2_code:token_budget": "10k", "B1_chat:max_samples": "3"},
    )
    address = await reviewed(browser, form)
    shown = await text_of(browser, address)

    assert "Ready to start: 2 partitions, 45 prompts, 2 answers to each" in shown
    assert "B2_code: 2 lines of B2_code.jsonl rejected" in shown
    assert "line 31: broken JSON" in shown
    assert "line 32: a list, not an object" in shown
    assert "40 and 40 characters; tokens counted as in the first 30 prompts" in shown
    # 3 x 100, and 80 x 200 within a budget of 10,000: a tenth to all of it
    assert ">1.63k – 10.3k</dd>" in shown
    assert "1.6k – 10k<small>budget 10k</small>" in shown
    assert "SGLang 0.5" in shown
    assert not (desk.answers / "fresh").exists()  # nothing is written before Start
    assert desk.door.submitted == []

    spec = (await browser.get(f"{address}/spec.toml")).text
    again = await text_of(browser, await reviewed(browser, {"spec": spec}))
    assert "Ready to start: 2 partitions, 45 prompts, 2 answers to each" in again
    changed = await text_of(browser, f"/new?again={address.rsplit('/', 1)[1]}")
    assert 'name="B2_code:token_budget" value="10k"' in changed


async def test_what_a_start_would_refuse_is_told_and_cannot_be_started(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:
    desk.write("night/B9_none.jsonl", ["no", "prompt"])
    form = desk.form(partition=["B9_none"], **{"B9_none:class": "short"})
    address = await reviewed(browser, form)
    shown = await text_of(browser, address)
    assert "It would not start: 1 error" in shown
    assert "none of the first 2 records of B9_none can be used (line 1:" in shown
    assert "Start</button>" not in shown
    assert (await browser.post(f"{address}/start")).status_code == 409
    assert desk.door.submitted == []


async def test_start_pressed_often_and_in_two_tabs_starts_one_run(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:  # ui-04
    address = await reviewed(browser, desk.form(name="twice"))
    answers = await asyncio.gather(*(browser.post(f"{address}/start") for _ in range(5)))

    (submitted,) = desk.door.submitted
    assert (submitted[0].name, submitted[1:]) == ("twice", (False, "anna (page)"))
    assert {each.status_code for each in answers} == {303}
    (place,) = {each.headers["location"] for each in answers}
    assert (await browser.get(place)).status_code == 200
    assert f'href="{place}"' in await text_of(browser, address)


async def test_a_refused_start_says_why_and_may_be_pressed_again(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:
    address = await reviewed(browser, desk.form(name="broken"))
    for n_pressed in (1, 2):
        answer = await browser.post(f"{address}/start")
        assert answer.headers["location"] == address
        shown = await text_of(browser, address)
        assert "partition B9 has no prompt file. Look there" in shown
        assert "Start</button>" in shown
        assert len(desk.door.submitted) == n_pressed


async def test_a_run_of_the_same_name_is_told_of(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:
    form = desk.form(name=desk.home.run_name, output_dir=str(desk.home.output_dir))
    desk.door.settings = desk.settings(output_roots=str(desk.home.output_dir))
    shown = await text_of(browser, await reviewed(browser, form))
    assert "was started otherwise" in shown


async def test_a_check_that_nobody_waits_for_reads_no_further(desk: PromptDesk) -> None:
    spec, said, abandoned = parse_spec(desk.spec(), "it"), [], Event()

    def say(words: str) -> None:
        said.append(words)
        if words.startswith("reading the prompts of"):
            abandoned.set()

    with pytest.raises(AbandonedError):
        await check(spec, desk.door.settings, SystemClock(), say, abandoned)
    assert said[-1] == "reading the prompts of B1_chat, 1 of 1"


async def test_the_end_of_the_service_ends_its_checks(desk: PromptDesk) -> None:
    checks = Checks(desk.home.ledger, desk.door, SystemClock())
    one = checks.begin(parse_spec(desk.spec(), "it"), {})
    await checks.close()

    assert one.checking is not None
    assert one.checking.done()
    assert one.abandoned.is_set()
    assert one.now.checked is None


async def test_a_start_that_takes_long_is_shown_and_goes_on_by_itself(desk: PromptDesk) -> None:
    """Whoever pressed may close the page: the start belongs to the service."""
    door = desk.door
    may_end = door.held_starts = asyncio.Event()
    checks = Checks(desk.home.ledger, door, SystemClock(), start_wait_s=0.0)
    one = checks.begin(parse_spec(desk.spec(name="slowly"), "it"), {})
    await wait_until(lambda: one.now.may_start, "the end of the check")
    assert await checks.start(one.id, "anna") is None
    sheet = review(one, SystemClock().now())
    assert "Starting" in str(draw(sheet.root, sheet))
    assert sheet.refresh_s > 0
    may_end.set()
    await wait_until(lambda: one.now.run_id is not None, "the run")
    assert await checks.start(one.id, "bert") == one.now.run_id
    assert len(door.submitted) == 1
    assert review(one, SystemClock().now()).refresh_s == 0


@pytest.mark.slow
async def test_only_so_many_checks_are_kept(desk: PromptDesk, browser: httpx.AsyncClient) -> None:
    first = await reviewed(browser, desk.form())
    for _ in range(8):
        await reviewed(browser, desk.form())
    answer = await browser.get(first)
    assert answer.status_code == 404
    assert "no longer kept" in answer.text
