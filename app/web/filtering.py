"""Which rows of partitions are shown, and in what order: as the address of the overview says.

Owns the words of the query (`state`, `sort`, `q`) and what each means. Pure. Invariants: a word
that is none counts as not given; a filter hides rows and removes none, so that clearing it needs no
server; an order by a figure that moves is held for some seconds by who asks for it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from app.core import format as words
from app.core.estimate import Estimate
from app.figures import PartitionFigures, RunFigures
from app.web.standing import standing

_NUMBERS = re.compile(r"([0-9]{1,18})")
STATES = {
    "all": "All states",
    "attention": "Needs attention",
    "running": "Running",
    "paused": "Paused",
    "over": "Over",
}
SORTS = {
    "attention": "Needs attention first",
    "name": "Name",
    "eta": "Time left",
    "speed": "Speed",
    "progress": "Progress",
}
# of these the order changes with every look
MOVING = frozenset({"eta", "speed", "progress"})
MAX_ASKED_CHARS = 80
_GROUPS = {
    "bad": "attention",
    "warn": "attention",
    "pause": "paused",
    "idle": "over",
    "done": "over",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What somebody wants to see of the partitions: a group, an order, a piece of a name."""

    state: str = "all"
    sort: str = "attention"
    q: str = ""

    @property
    def query(self) -> dict[str, str]:
        """Return what must stand in an address, without what holds anyway.

        >>> View(state="paused", q="a b").query, View().query
        ({'state': 'paused', 'q': 'a b'}, {})
        """
        plain = View()
        pairs = (("state", self.state, plain.state), ("sort", self.sort, plain.sort))
        found = {name: value for name, value, usual in pairs if value != usual}
        return found | ({"q": self.q} if self.q else {})

    @property
    def rest(self) -> str:
        """Return the query as it follows another one.

        >>> View(sort="eta", q="a&b").rest, View().rest
        ('&sort=eta&q=a%26b', '')
        """
        return f"&{urlencode(self.query)}" if self.query else ""

    def shows(self, name: str, kind: str) -> bool:
        """Return whether a partition of that name, whose pill has that look, is shown."""
        is_named = self.q.casefold() in name.casefold()
        return is_named and self.state in ("all", group_of(kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A view, and the order of the ids where it was placed before: None to place them now."""

    view: View = View()
    order: tuple[int, ...] | None = None


EVERYTHING = Listing()


def view_of(query: Mapping[str, str]) -> View:
    """Return what a query asks for.

    >>> view_of({"state": "paused", "sort": "colour", "q": " math "})
    View(state='paused', sort='attention', q='math')
    """
    state, sort = query.get("state", ""), query.get("sort", "")
    return View(
        state=state if state in STATES else "all",
        sort=sort if sort in SORTS else "attention",
        q=words.one_line(query.get("q", "").strip())[:MAX_ASKED_CHARS],
    )


def group_of(kind: str) -> str:
    """Return the group of a pill's look: attention, running, paused or over."""
    return _GROUPS.get(kind, "running")


def order_of(run: RunFigures, sort: str) -> tuple[int, ...]:
    """Return the ids of the partitions in an order; by name where the figure is the same.

    What is not known comes last: a speed, an end.
    """
    placed = sorted(run.partitions, key=lambda each: (*_place(run, each, sort), by_name(each.name)))
    return tuple(each.id for each in placed)


def by_name(name: str) -> tuple[tuple[int, str], ...]:
    """Return what names are sorted by: numbers in them by their size, as a person counts.

    >>> sorted(["B10_x", "B2_x", "A_1"], key=by_name)
    ['A_1', 'B2_x', 'B10_x']
    """
    return tuple(
        (int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBERS.split(name) if part
    )


def _place(run: RunFigures, each: PartitionFigures, sort: str) -> tuple[float, ...]:
    match sort:
        case "speed":
            return (-(each.speed_tokens_per_s if each.speed_tokens_per_s is not None else -1.0),)
        case "progress":
            return (-each.percent,)
        case "eta":
            left = each.time_left
            return (left.mid_s,) if isinstance(left, Estimate) else (float("inf"),)
        case "attention":
            return (standing(run, each).rank,)
    return ()
