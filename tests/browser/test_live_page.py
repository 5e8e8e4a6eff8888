"""Frames in a real browser: figures move, and nothing that a person does is taken away."""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Tabs
from tests.browser.looking import (
    SPEED,
    badge,
    concurrency,
    own_concurrency,
    row,
    stands_under,
    until_moved,
    until_reads,
)
from tests.browser.stage import Stage, pause, set_concurrency
from tests.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")
CDN_MODES = pytest.mark.parametrize("cdn", ["ok", "refused"])


@CDN_MODES
async def test_figures_move_in_elements_that_stay(stage: Stage, tabs: Tabs, cdn: str) -> None:
    page = await tabs.open(stage.run_address, cdn)
    await page.evaluate("document.querySelectorAll('#rows *').forEach(each => each.mark = 1)")
    await until_moved(page, 3)
    lost = "[...document.querySelectorAll('#rows *')].filter(each => !each.mark).length"
    assert await page.evaluate(lost) == 0
    await until_reads(badge(page), text="live")
    assert stage.site.live.n_viewers == 1


@CDN_MODES
async def test_a_row_changes_its_form_around_the_focus(stage: Stage, tabs: Tabs, cdn: str) -> None:
    page = await tabs.open(stage.run_address, cdn)
    await until_moved(page)
    field = concurrency(page, "B2_code")
    await field.click()
    await field.evaluate("element => element.mark = 1")
    await page.keyboard.type("7")
    pause(stage, "B2_code")
    await until_reads(row(page, "B2_code"), text="Resume")
    assert await page.evaluate("document.activeElement.mark") == 1
    assert "7" in await field.input_value()


async def test_typing_through_frames_keeps_focus_caret_and_the_half_typed_figure(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    field = concurrency(page, "B1_chat")
    await field.fill("123")
    await page.keyboard.press("ArrowLeft")
    await until_moved(page, 5)
    caret = "[document.activeElement.name, document.activeElement.selectionStart]"
    assert await page.evaluate(caret) == ["requests", 2]
    await page.keyboard.type("9")
    assert await field.input_value() == "1293"
    assert not stage.ward.posts()


async def test_a_value_of_somebody_else_waits_until_the_field_is_left(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    field = concurrency(page, "B1_chat")
    await field.focus()
    await page.keyboard.press("Control+a")
    set_concurrency(stage, "B1_chat", 77)
    await page.locator("#rows input[name=requests][value='77']").wait_for(state="attached")
    assert await field.input_value() != "77"
    await page.keyboard.press("Escape")
    assert await field.input_value() == "77"
    assert not stage.ward.posts()


async def test_two_presses_are_one_request(stage: Stage, tabs: Tabs) -> None:
    set_concurrency(stage, "B1_chat", 64)
    page = await tabs.open(stage.run_address)
    more = row(page, "B1_chat").get_by_role("button", name="More concurrency")
    await more.click()
    await more.click()
    assert await concurrency(page, "B1_chat").input_value() == "80"
    assert await page.locator("form.step.wait").count() == 1
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 80, "the ledger to say 80")
    await page.locator(".toast").wait_for()
    await until_moved(page, 4)
    assert [each.body for each in stage.ward.posts()] == [{"expect": "64", "requests": "80"}]
    assert await page.locator("form.step.wait").count() == 0
    assert await concurrency(page, "B1_chat").input_value() == "80"


async def test_a_press_with_shift_doubles_and_halves(stage: Stage, tabs: Tabs) -> None:
    set_concurrency(stage, "B1_chat", 24)
    page = await tabs.open(stage.run_address)
    buttons = row(page, "B1_chat").get_by_role("button")
    await buttons.filter(has_text="+").click(modifiers=["Shift"])
    assert await concurrency(page, "B1_chat").input_value() == "48"
    await buttons.filter(has_text="−").click(modifiers=["Shift"])
    await buttons.filter(has_text="−").click(modifiers=["Shift"])
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 12, "the ledger to say 12")


async def test_a_typed_figure_is_sent_once_by_enter_and_not_again_by_leaving(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    field = concurrency(page, "B2_code")
    await field.fill("31")
    await page.keyboard.press("Enter")
    await wait_until(lambda: own_concurrency(stage, "B2_code") == 31, "the ledger to say 31")
    await field.blur()
    await until_moved(page, 5)
    assert len(stage.ward.posts()) == 1
    await field.fill("33")
    await field.blur()
    await wait_until(lambda: own_concurrency(stage, "B2_code") == 33, "the ledger to say 33")


async def test_what_is_refused_is_said_the_old_value_stands_and_the_focus_stays(
    stage: Stage, tabs: Tabs
) -> None:
    set_concurrency(stage, "B1_chat", 64)
    page = await tabs.open(stage.run_address)
    field = concurrency(page, "B1_chat")
    await field.fill("99999")
    await page.keyboard.press("Enter")
    told = page.locator("#toast .toast")
    await until_reads(told, text="from 1 to 10,000")
    assert await stands_under(told, field)
    assert await field.input_value() == "64"
    assert await field.evaluate("element => element === document.activeElement")
    assert own_concurrency(stage, "B1_chat") == 64
    await field.fill("65")
    await page.keyboard.press("Enter")
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 65, "the good order")
    await expect(page.locator("#toast")).not_to_contain_text("from 1 to 10,000")


async def test_what_could_not_be_sent_is_said(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await page.route("**/pause", lambda route: route.abort())
    button = row(page, "B1_chat").get_by_role("button", name="Pause")
    await button.click()
    told = page.locator("#toast .toast")
    await until_reads(told, text="Not sent")
    assert await stands_under(told, button)
    await page.mouse.wheel(0, 40)
    await until_reads(page.locator("#toast .toast:not(.at)"), text="Not sent")


async def test_selected_text_stays_selected(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await until_moved(page)
    shown = await page.locator(SPEED).text_content()
    await page.locator(SPEED).dblclick()
    other = page.locator("#rows tr:nth-child(2) td[data-l='tok/s'] span")
    for _ in range(2):
        old = await other.text_content()
        await page.wait_for_function(
            "([cell, old]) => cell.textContent !== old", arg=[await other.element_handle(), old]
        )
    assert (await page.evaluate("String(getSelection())")).strip() in (shown or "")
    assert await page.locator(SPEED).text_content() == shown
    await page.evaluate("getSelection().removeAllRanges()")
    await until_moved(page)


async def test_freeze_holds_the_figures_and_lets_them_catch_up(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await until_moved(page)
    await page.keyboard.press(".")
    await until_reads(badge(page), text="frozen at")
    held = await page.locator(SPEED).text_content()
    before = stage.door.speed
    await wait_until(lambda: stage.door.speed >= before + 150, "three more looks")
    assert await page.locator(SPEED).text_content() == held
    await page.get_by_role("button", name="Freeze").click()
    await until_reads(badge(page), text="live")
    await until_moved(page)


async def test_an_open_dialog_stays_open_while_the_page_changes(stage: Stage, tabs: Tabs) -> None:
    page = await tabs.open(stage.run_address)
    await page.get_by_text("Stop run…").click()
    pause(stage, "B1_chat")
    await until_reads(row(page, "B1_chat"), text="Paused")
    assert await page.locator("dialog#stop[open]").count() == 1
    await page.keyboard.press("Escape")
    assert await page.locator("dialog#stop[open]").count() == 0


async def test_leaving_a_field_that_was_sent_orders_nothing_of_its_old_figure(
    stage: Stage, tabs: Tabs
) -> None:
    page = await tabs.open(stage.run_address)
    field = concurrency(page, "B1_chat")
    await field.fill("9")
    await field.press("Enter")
    await wait_until(lambda: own_concurrency(stage, "B1_chat") == 9, "the ledger to say 9")
    set_concurrency(stage, "B1_chat", 4)  # somebody else's, while the focus is still here
    await page.locator("#rows input[name=requests][value='4']").wait_for(state="attached")
    await until_moved(page, 8)
    assert await field.input_value() == "4"
    await field.blur()
    await until_moved(page, 4)
    assert own_concurrency(stage, "B1_chat") == 4
    assert [each.body for each in stage.ward.posts()] == [{"expect": "share", "requests": "9"}]
