"""Where a run begins, drawn from values: the folders to choose from, and the form of one.

Owns what both pages show. Pure: what was found on the disk and what was typed are handed in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from app.core import format as words
from app.files.prompt_folders import Found, PromptFolder
from app.submission.permitting import OUTPUT_SETTING, PROMPTS_SETTING, SERVERS_SETTING
from app.web.new_run.asking import Server
from app.web.new_run.fields import CLASSES, Asked, Complaints
from app.web.rendering import page

NOTHING_WRONG = Complaints(by_field={})
_SETTINGS = {"prompts": PROMPTS_SETTING, "output": OUTPUT_SETTING, "servers": SERVERS_SETTING}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A folder in the list; `address` is "" where it cannot be chosen."""

    shown: str
    address: str
    said: str
    names: tuple[str, ...]


def choosing(
    roots: Sequence[Path],
    found: Found,
    *,
    text: str = "",
    wrong: Sequence[str] = (),
    refused: str = "",
) -> Markup:
    """Return the folders below the roots, and a field for a spec.

    `text` stands in the field, `wrong` is what is wrong with it; `refused` says why a folder that
    was chosen cannot be.
    """
    shown = {
        "roots": [str(each) for each in roots],
        "choices": [_choice(each) for each in found.folders],
        "troubles": _troubles(found),
        "settings": _SETTINGS,
        "text": text,
        "wrong": wrong,
        "refused": refused,
    }
    return page("new_run/choose.html", shown)


def form(
    folder: PromptFolder,
    asked: Asked,
    servers: Sequence[Server],
    output_roots: Sequence[Path],
    wrong: Complaints = NOTHING_WRONG,
) -> Markup:
    """Return the form of a folder as it is filled in, with what is wrong beside each field."""
    chosen = asked.all("server_urls")
    shown = {
        "folder": str(folder.path),
        "files": [(each, words.size(each.size_bytes)) for each in folder.files],
        "asked": asked,
        "wrong": wrong.by_field,
        "others": wrong.others,
        "n_wrong": len(wrong.by_field) + len(wrong.others),
        "servers": [(each, each.url in chosen) for each in servers],
        "output_roots": [str(each) for each in output_roots],
        "settings": _SETTINGS,
        "classes": CLASSES,
    }
    return page("new_run/form.html", shown)


def _troubles(found: Found) -> list[str]:
    more = f"only the first {len(found.folders)} folders with prompts are listed; a narrower root"
    return [*found.troubles, *([f"{more} in {PROMPTS_SETTING} shows the others"] * found.is_cut)]


def _choice(folder: PromptFolder) -> _Choice:
    path, names = str(folder.path), tuple(each.partition for each in folder.files)
    said = (
        f"{words.plural(len(names), 'partition')}, {words.size(folder.size_bytes)},"
        f" {', '.join(sorted({each.kind for each in folder.files}))}"
    )
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = path.encode("utf-8", "backslashreplace").decode()
        return _Choice(shown=shown, address="", said="its name is no UTF-8; rename it", names=())
    is_usable = not folder.trouble
    return _Choice(
        shown=path,
        address=path if is_usable else "",
        said=said if is_usable else folder.trouble,
        names=names,
    )
