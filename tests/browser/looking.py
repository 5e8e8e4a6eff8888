"""What the tests look at on a page, under names; a row is found by its partition."""

from playwright.async_api import Locator, Page, expect

from tests.browser.stage import Stage

SPEED = "#rows tr:nth-child(1) td[data-l='tok/s'] span"


def row(page: Page, name: str) -> Locator:
    return page.locator(f"#rows tr[data-name={name}]")


def concurrency(page: Page, name: str) -> Locator:
    return row(page, name).locator("input[name=requests]")


def badge(page: Page) -> Locator:
    return page.locator("#l-page b")


async def until_moved(page: Page, n: int = 1) -> None:
    """Wait until the first row's speed has changed `n` times."""
    for _ in range(n):
        shown = await page.locator(SPEED).text_content()
        await page.wait_for_function(
            "([cell, old]) => document.querySelector(cell).textContent !== old", arg=[SPEED, shown]
        )


async def until_reads(
    locator: Locator, *, text: str = "", value: str = "", within_ms: int = 45_000
) -> None:
    """Wait until an element's text contains something, or a field's value is something."""
    if value:
        await expect(locator).to_have_value(value, timeout=within_ms)
    else:
        await expect(locator).to_contain_text(text, timeout=within_ms)


async def stands_under(message: Locator, control: Locator) -> bool:
    """Whether a message begins right below a control's form."""
    told, used = await message.bounding_box(), await control.locator("xpath=..").bounding_box()
    assert told is not None
    assert used is not None
    gap = told["y"] - (used["y"] + used["height"])
    return 0 <= gap <= 12 and told["x"] <= used["x"] + used["width"]


def own_concurrency(stage: Stage, name: str) -> int | None:
    return stage.home.partition(name).own_concurrency
