"""Small invented pages for the tests of what is sent: a drawing without templates, and a browser
that is only a tree: it applies frames as the page's script does."""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from html import escape
from xml.etree import ElementTree as Tree

from app.web.frames import Frame
from app.web.sheet import Block, Sheet

_PARTIAL = re.compile(r'<hx-partial hx-target="#([^"]+)"[^>]*>(.*?)</hx-partial>', re.DOTALL)


def cells(name: str, texts: Sequence[str], *children: Block, with_line: bool = False) -> Block:
    """Return a block that holds the cells of these names, a line if wanted, and its children."""
    return Block(id=name, template="none", about=(tuple(texts), with_line), children=children)


def draw(block: Block, sheet: Sheet) -> str:
    """Draw a block as the templates do: everything from `about` and the sheet."""
    assert isinstance(block.about, tuple)
    texts, with_line = block.about
    inside = "".join(
        f'<i id="{name}"{_attributes(sheet.attrs.get(name, {}))}>{escape(sheet.texts[name])}</i>'
        for name in texts
    )
    if with_line:
        inside += f'<path id="{block.id}-l" d="{escape(sheet.paths[block.id + "-l"])}"></path>'
    inside += "".join(draw(child, sheet) for child in block.children)
    return f'<div id="{block.id}">{inside}</div>'


def _attributes(pairs: Mapping[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in sorted(pairs.items()))


class Viewer:
    """A page in a browser, as far as frames are concerned."""

    def __init__(self, sheet: Sheet) -> None:
        self.tree = _parsed(f"<body>{draw(sheet.root, sheet)}</body>")
        self.title = sheet.title
        self.structure = sheet.structure
        self.seq = ""
        self.said: list[str] = []

    def apply(self, frame: Frame) -> None:
        for name, markup in _PARTIAL.findall(frame.get("html", "")):
            self._replace(name, _parsed(markup))
        by_id = {each.get("id"): each for each in self.tree.iter()}
        for name, pairs in frame.get("attrs", {}).items():
            if name not in by_id:
                assert set(pairs.values()) == {None}  # of an element that has gone
                continue
            for key, value in pairs.items():
                _set(by_id[name], key, value)
        for name, d in frame.get("paths", {}).items():
            _set(by_id[name], "d", d)
        for name, text in frame.get("texts", {}).items():
            by_id[name].text = text
        self.title = frame.get("title", self.title)
        self.structure = frame.get("structure", self.structure)
        self.seq = frame["seq"]
        if "say" in frame:
            self.said.append(frame["say"])

    def _replace(self, name: str, fresh: Tree.Element) -> None:
        for parent in self.tree.iter():
            for place, child in enumerate(parent):
                if child.get("id") == name:
                    parent[place] = fresh
                    return
        raise AssertionError(f"the page has no element {name}")

    def shows(self, sheet: Sheet, *, with_lines: bool = True) -> bool:
        """Return whether the page is what would be drawn from this sheet."""
        ours, theirs = deepcopy(self.tree), Viewer(sheet).tree
        if not with_lines:
            for path in [*ours.iter("path"), *theirs.iter("path")]:
                path.set("d", "")
        same = Tree.canonicalize(Tree.tostring(ours)) == Tree.canonicalize(Tree.tostring(theirs))
        return same and (self.title, self.structure) == (sheet.title, sheet.structure)


def _parsed(markup: str) -> Tree.Element:
    return Tree.fromstring(markup)  # noqa: S314 - our own drawing


def _set(element: Tree.Element, name: str, value: str | None) -> None:
    if value is not None:
        element.set(name, value)
    elif name in element.attrib:
        del element.attrib[name]


def counter_page(n: int, rows: Sequence[str] = ("p1", "p2")) -> Sheet:
    """Return a page whose every row counts: the n-th look at it."""
    return Sheet(
        root=cells("page", ["head"], *(cells(row, [f"{row}-v"], with_line=True) for row in rows)),
        title=f"{n} % · night",
        texts={"head": f"look {n}", **{f"{row}-v": f"{row} at {n}" for row in rows}},
        attrs={"head": {"title": str(n)}},
        paths={f"{row}-l": f"M{n} {n}" for row in rows},
    )
