"""A page as values: blocks of markup that seldom change, and the texts and attributes that do.

A page is drawn from one `Sheet`, and what a viewer is sent each second is the difference of two.
Invariants: every element whose text or attributes change has an id and stands in `texts` or
`attrs`; a block's markup depends on `about`, its children's ids and the sheet, on nothing else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """An element with this id, drawn by a template from `about`: its structure.

    `about` is a frozen value; equal values mean equal markup, texts and attributes apart.
    Children are blocks that stand inside it and are drawn where the template shows them.
    """

    id: str
    template: str
    about: object = None
    children: tuple["Block", ...] = ()

    @property
    def form(self) -> tuple[object, ...]:
        """What must be equal for the element to stay as it is, its children's insides apart."""
        return (self.id, self.template, self.about, tuple(child.id for child in self.children))

    def walk(self) -> Iterator["Block"]:
        """Give this block and all that stand in it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A whole page at one moment. `texts` and `attrs` are by the ids of elements.

    `paths` are the few attributes that are long (`d` of a line), likewise by id: they may be sent
    some seconds later than the rest. `at` is when the figures were collected, None if they are
    those of the moment in which it was made. `refresh_s`: without a script the page asks for itself
    again after so long, 0: it does not.
    """

    root: Block
    title: str
    texts: Mapping[str, str] = field(default_factory=dict)
    attrs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    spoken: Mapping[str, str] = field(default_factory=dict)
    at: datetime | None = None
    refresh_s: int = 0

    @property
    def structure(self) -> str:
        """Return a short name of everything that is not text or attribute: equal, equal markup."""
        forms = repr([block.form for block in self.root.walk()])
        return sha256(forms.encode()).hexdigest()[:12]
