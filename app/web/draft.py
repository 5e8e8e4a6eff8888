"""A sheet in the making: pieces add their texts, attributes and paths to one draft.

Invariant: an id is written once; two pieces that claim the same one are a fault of ours.
"""

from datetime import datetime

from app.clock import iso
from app.web.sheet import Block, Sheet
from app.web.wording import moment


class Draft:
    """Collects what the cells of a page hold. `now` is the moment that the page shows."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._texts: dict[str, str] = {}
        self._attrs: dict[str, dict[str, str]] = {}
        self._paths: dict[str, str] = {}
        self._spoken: dict[str, str] = {}

    def text(self, name: str, value: str) -> None:
        if name in self._texts:
            raise KeyError(f"the text {name} is written twice")
        self._texts[name] = value

    def attr(self, name: str, **values: str) -> None:
        """Set attributes of an element; `aria_x` stands for `aria-x`."""
        if name in self._attrs:
            raise KeyError(f"the attributes of {name} are written twice")
        self._attrs[name] = {key.replace("_", "-"): value for key, value in values.items()}

    def path(self, name: str, d: str) -> None:
        """Set the line of a `<path>`, which may be sent later than the rest."""
        self._paths[name] = d

    def spoken(self, state: str, sentence: str) -> None:
        """Have the sentence read aloud when this state begins."""
        self._spoken[state] = sentence

    def clock(self, name: str, at: datetime | None, *, otherwise: str = "") -> None:
        """Set a `<time>`: this machine's clock time, which a browser turns into its own."""
        self.text(name, otherwise if at is None else moment(at, self.now))
        self.attr(name, datetime="" if at is None else iso(at))

    def sheet(self, root: Block, title: str, at: datetime | None = None) -> Sheet:
        return Sheet(
            root=root,
            title=title,
            texts=self._texts,
            attrs=self._attrs,
            paths=self._paths,
            spoken=self._spoken,
            at=at,
        )
