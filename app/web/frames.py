"""What has changed on a page since a viewer last heard of it, as one JSON object.

Owns the grammar of frames and the list of attributes that a frame may set. Pure. Invariants: every
value in a frame is the newest; a viewer that applies the frame `since` its own number has the
newest structure, texts and attributes, however many frames it missed; lines (`paths`) follow as
`pacing` lets them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

import orjson

from app.clock import iso
from app.web.pacing import Lines
from app.web.sheet import Block, Sheet

K = TypeVar("K")
V = TypeVar("V")
Frame = dict[str, Any]
Draw = Callable[[Block, Sheet], str]

HORIZON_LOOKS = 60  # who missed more than a minute is sent everything
_SETTABLE = """
width height x y x1 x2 y1 y2 cx cy r d points transform visibility
value min max checked disabled placeholder class title hidden datetime
aria-valuenow aria-valuetext aria-valuemin aria-valuemax aria-label aria-pressed aria-current
aria-disabled aria-busy aria-describedby data-begin data-end
"""  # none that loads, leads somewhere or runs
ATTRIBUTES = frozenset(_SETTABLE.split())
_MAX_SAYINGS = 5
_ID = re.compile(r"[A-Za-z][\w-]*")
_IDS_IN_MARKUP = re.compile(r'\bid="([^"]+)"')


class _Dated(Generic[K, V]):
    """Values by key, each with the number of the look in which it became what it is."""

    def __init__(self) -> None:
        self._held: dict[K, tuple[V, int]] = {}

    def update(self, values: Mapping[K, V], number: int) -> None:
        held = self._held
        for key in held.keys() - values.keys():
            del held[key]
        for key, value in values.items():
            if key not in held or held[key][0] != value:
                held[key] = (value, number)

    def since(self, number: int) -> Iterator[tuple[K, V]]:
        return ((key, value) for key, (value, when) in self._held.items() if when > number)

    def set_or_recent(self, number: int) -> list[K]:
        """Return the keys that hold something, or were emptied after that look."""
        return [
            key for key, (value, when) in self._held.items() if value is not None or when > number
        ]


class Differ:
    """The newest sheet of one page, and when each thing on it became so.

    Numbers of looks only grow; `boot` tells the numbers of one start of the service from
    another's. `draw` makes the markup of a block. Raises ValueError for an attribute that no frame
    may set, and for the id of a block that is no plain word.
    """

    def __init__(self, draw: Draw, boot: str, sheet: Sheet, *, number: int, at: datetime) -> None:
        self._draw = draw
        self._boot = boot
        self._texts = _Dated[str, str]()
        self._attrs = _Dated[tuple[str, str], str | None]()
        self._forms = _Dated[str, tuple[object, ...]]()
        self._page = _Dated[str, str]()
        self._lines = Lines()
        self._sayings: list[tuple[int, str]] = []
        self.born = number
        self._take(sheet, number, at)

    def next(self, sheet: Sheet, *, number: int, at: datetime) -> Frame | None:
        """Take the sheet of a later look; return what changed since the last one, if anything."""
        before = self.number
        for key, sentence in sheet.spoken.items():
            if key not in self._sheet.spoken:
                self.say(sentence)
        self._take(sheet, number, at)
        frame = self.since(before)
        used_bytes = len(encode(frame or self.head()))
        return self.since(before) if self._lines.release(used_bytes, number) else frame

    @property
    def structure(self) -> str:
        return self._sheet.structure

    def _take(self, sheet: Sheet, number: int, at: datetime) -> None:
        self._sheet, self.number, self._at = sheet, number, iso(sheet.at or at)
        self._texts.update(sheet.texts, number)
        self._attrs.update(self._flat(), number)
        self._forms.update({block.id: block.form for block in sheet.root.walk()}, number)
        self._page.update({"structure": sheet.structure, "title": sheet.title}, number)
        self._lines.update(sheet.paths, number)

    def say(self, text: str) -> None:
        """Have this spoken, once, to those who listen to the page: it goes with the next frame."""
        self._sayings = [*self._sayings, (self.number + 1, text)][-_MAX_SAYINGS:]

    def knows(self, number: int) -> bool:
        """Return whether `since` can answer a viewer that has this number."""
        return max(self.born, self.number - HORIZON_LOOKS) <= number <= self.number

    def since(self, number: int) -> Frame | None:
        """Return all that became so after that look, or None if nothing did."""
        moved = {name for name, _form in self._forms.since(number)}
        html = "".join(self._partial(block) for block in _topmost(self._sheet.root, moved))
        return self._frame(
            dict(self._page.since(number)),
            html,
            self._texts.since(number),
            self._attrs.since(number),
            self._lines.since(number).items(),
            " ".join(text for when, text in self._sayings if number < when <= self.number),
        )

    def full(self, has: str | None) -> Frame:
        """Return everything, for a viewer whose markup has the structure `has`."""
        sheet = self._sheet
        return {
            **self.head(),
            **(
                self._frame(
                    {"structure": self.structure, "title": sheet.title},
                    "" if has == self.structure else self._partial(sheet.root),
                    sheet.texts.items(),
                    self._flat().items(),
                    sheet.paths.items(),
                )
                or {}
            ),
        }

    def _frame(
        self,
        page: Frame,
        html: str,
        texts: Iterable[tuple[str, str]],
        attrs: Iterable[tuple[tuple[str, str], str | None]],
        paths: Iterable[tuple[str, str]],
        say: str = "",
    ) -> Frame | None:
        """Put a frame together; what stands in its markup is not told a second time."""
        inside = set(_IDS_IN_MARKUP.findall(html))
        nested: dict[str, dict[str, str | None]] = {}
        for (name, key), value in attrs:
            if name not in inside:
                nested.setdefault(name, {})[key] = value
        changes = {
            "html": html,
            "texts": {name: text for name, text in texts if name not in inside},
            "attrs": nested,
            "paths": {name: d for name, d in paths if name not in inside},
            "say": say,
        }
        told = page | {key: value for key, value in changes.items() if value}
        return {**self.head(), **told} if told else None

    def head(self) -> Frame:
        """Return what stands in every frame: its number, and of which moment its figures are."""
        return {"seq": f"{self._boot}-{self.number}", "at": self._at}

    def _flat(self) -> dict[tuple[str, str], str | None]:
        """Return the attributes one by one; None for one that an element had and has no more."""
        horizon = self.number - HORIZON_LOOKS
        flat: dict[tuple[str, str], str | None] = {}
        flat.update(dict.fromkeys(self._attrs.set_or_recent(horizon)))
        for name, pairs in self._sheet.attrs.items():
            for key, value in pairs.items():
                if key not in ATTRIBUTES:
                    raise ValueError(f"a frame may not set the attribute {key} (of {name})")
                flat[name, key] = value
        return flat

    def _partial(self, block: Block) -> str:
        if not _ID.fullmatch(block.id):
            raise ValueError(f"the id of a block must be a plain word, not {block.id!r}")
        drawn = self._draw(block, self._sheet)
        return f'<hx-partial hx-target="#{block.id}" hx-swap="outerMorph">{drawn}</hx-partial>'


def encode(frame: Frame) -> bytes:
    """Return the frame on one line."""
    return orjson.dumps(frame)


def _topmost(block: Block, moved: set[str]) -> Iterator[Block]:
    """Give the blocks whose own form changed, none that stands in another of them."""
    if block.id in moved:
        yield block
    else:
        for child in block.children:
            yield from _topmost(child, moved)
