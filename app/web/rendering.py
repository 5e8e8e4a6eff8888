"""Templates to markup: the one Jinja environment, and a block drawn from its sheet.

Owns escaping (always on) and the few words that templates use for cells. Invariant: a template
that names a cell which its sheet does not have is an error, never an empty place.
"""

from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from app.ledger.migrate import bundled
from app.web.sheet import Block, Sheet


@cache
def environment() -> Environment:
    """Return the environment of all templates, made once."""
    return Environment(
        loader=FileSystemLoader(bundled("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


class Pen:
    """What a template draws its cells with: `s` in every template of a block."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet

    def text(self, name: str) -> str:
        """Return the text of an element that has this id."""
        return self._sheet.texts[name]

    def cell(self, name: str, kind: str = "") -> Markup:
        """Return a span that holds the text of this id."""
        klass = Markup(' class="{}"').format(kind) if kind else Markup("")
        return Markup('<span id="{}"{}>{}</span>').format(name, klass, self.text(name))

    def at(self, name: str) -> Markup:
        """Return the id and the attributes of an element, to stand inside its tag."""
        pairs = {"id": name, **self._sheet.attrs.get(name, {})}
        if name in self._sheet.paths:
            pairs["d"] = self._sheet.paths[name]
        return Markup(" ").join(Markup('{}="{}"').format(k, v) for k, v in pairs.items())

    def show(self, block: Block) -> Markup:
        """Draw a block that stands inside."""
        return draw(block, self._sheet)


def draw(block: Block, sheet: Sheet) -> Markup:
    """Return the markup of one block with everything in it."""
    template = environment().get_template(block.template)
    drawn = template.render(s=Pen(sheet), block=block, about=block.about)
    return Markup(drawn)  # noqa: S704 - the environment escapes always


def page(template: str, values: Mapping[str, object]) -> Markup:
    """Return a template that is no block: a document, or a piece that is drawn once."""
    drawn = environment().get_template(template).render(values)
    return Markup(drawn)  # noqa: S704 - the environment escapes always
