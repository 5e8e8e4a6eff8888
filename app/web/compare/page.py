"""The page that compares two runs, and the one that asks which two. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core import format as words
from app.web.compare import sides
from app.web.compare.sides import Line, Pair, Side
from app.web.draft import Draft
from app.web.sheet import Block, Sheet

Choices = Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """`runs` are number and name of both, none while they are being chosen."""

    choices: tuple[tuple[int, str], ...]
    chosen: tuple[int, int]
    why: str = ""
    runs: tuple[tuple[int, str], ...] = ()
    settings: tuple[Line, ...] = ()
    n_differ: int = 0
    course: tuple[Line, ...] = ()
    partitions: tuple[Pair, ...] = ()
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()


def choosing_page(choices: Choices, chosen: tuple[int, int], now: datetime) -> Sheet:
    """Return the page that asks for two different runs."""
    why = "Choose two runs."
    if len(choices) < 2:  # noqa: PLR2004 - it takes two
        why = "It takes two runs to compare; there is one at most."
    elif chosen[0] and chosen[0] == chosen[1]:
        why = "These are the same run; choose another one."
    about = About(choices=tuple(choices), chosen=chosen, why=why)
    root = Block(id="page", template="compare/page.html", about=about)
    return Draft(now).sheet(root, "Compare · Longwatch")


def compare_page(choices: Choices, a: Side, b: Side, now: datetime) -> Sheet:
    """Return both side by side."""
    both = tuple(sides.runs_told(a, b))
    known = dict(choices)
    settings = sides.settings(a, b)
    about = About(
        choices=(*choices, *(each for each in both if each[0] not in known)),
        chosen=(both[0][0], both[1][0]),
        runs=both,
        settings=settings,
        n_differ=sum(bool(line.difference) for line in settings),
        course=sides.course(a, b),
        partitions=sides.partitions(a, b),
        only=tuple(
            (one.figures.name, names)
            for one, other in ((a, b), (b, a))
            if (names := sides.only_in(one, other))
        ),
    )
    root = Block(id="page", template="compare/page.html", about=about)
    title = " and ".join(words.one_line(name) for _, name in both)
    return Draft(now).sheet(root, f"{title} compared")
