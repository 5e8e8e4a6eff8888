"""The stylesheet: contrast of its colour tokens, and its weight."""

import gzip
import re

import pytest

from app.ledger.migrate import bundled
from app.web.assets import own_assets

# what is read on what, and how much contrast WCAG asks for: 4.5 text, 3 shapes and borders
PAIRS = [
    ("ink", "page", 7.0),
    ("ink", "card", 7.0),
    ("ink", "sunk", 7.0),
    ("mute", "page", 4.5),
    ("mute", "card", 4.5),
    ("accent", "page", 4.5),
    ("accent", "card", 4.5),
    ("accent", "sunk", 4.5),
    ("on-accent", "accent", 4.5),
    ("bad-text", "page", 4.5),
    ("warn-ink", "warn-bg", 4.5),
    ("bad-ink", "bad-bg", 4.5),
    ("idle-ink", "idle-bg", 4.5),
    ("ctl", "page", 3.0),
    ("focus", "page", 3.0),
    ("focus", "card", 3.0),
    ("ok", "page", 3.0),
    ("amber", "page", 3.0),
    ("bar-done", "bar-track", 3.0),
    ("bar-tick", "bar-track", 3.0),
    ("s1", "card", 3.0),
    ("s2", "page", 3.0),
    ("s3", "card", 3.0),
]


def style() -> str:
    name = own_assets().style.removeprefix("/static/")
    return own_assets().files[name][0].decode()


def tokens(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block))


def blocks() -> dict[str, dict[str, str]]:
    text = style()
    light = text[text.index(":root {") : text.index("@media (prefers-color-scheme: dark)")]
    system_dark = text[
        text.index(":root:not([data-theme=light])") : text.index(":root[data-theme=dark]")
    ]
    chosen_dark = text[
        text.index(":root[data-theme=dark]") : text.index("@media (pointer: coarse)")
    ]
    return {
        "light": tokens(light),
        "system dark": tokens(system_dark),
        "chosen dark": tokens(chosen_dark),
    }


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "system dark"])
@pytest.mark.parametrize(("front", "back", "least"), PAIRS)
def test_tokens_have_the_contrast_that_they_need(
    theme: str, front: str, back: str, least: float
) -> None:
    colours = blocks()[theme]
    assert contrast(colours[front], colours[back]) >= least


def test_dark_by_system_and_dark_by_choice_are_the_same() -> None:
    assert blocks()["system dark"] == blocks()["chosen dark"]
    assert blocks()["system dark"].keys() == blocks()["light"].keys()


def test_our_own_files_are_light() -> None:
    sizes = {name: len(gzip.compress(body, 6)) for name, (body, _) in own_assets().files.items()}
    style_bytes = sum(size for name, size in sizes.items() if name.endswith(".css"))
    script_bytes = sum(size for name, size in sizes.items() if name.endswith(".js"))
    assert style_bytes < 8_000
    assert script_bytes < 12_000


def test_nothing_is_loaded_from_elsewhere_by_the_stylesheet() -> None:
    assert not re.findall(r"@import|url\((?!#)", style())


def test_no_two_files_of_the_script_take_the_same_name() -> None:
    """They share one scope: a second function of a name would take the place of the first."""
    declared = re.compile(r"^(?:async )?(?:function|const|let) \*?(\w+)", re.MULTILINE)
    names = [
        name
        for path in sorted(bundled("static").glob("app/*.js"))
        for name in declared.findall(path.read_text())
    ]
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))
