"""The list of activity as a sheet: what to show, then the entries by day, newest first.

Owns what a line says. Pure. Invariant: entries stand in blocks of up to twenty that keep their ids,
so that a new entry sends its own block and no more.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from app.clock import iso
from app.core import format as words
from app.figures import RunFigures
from app.ledger.activity import Activity, Listing
from app.web import head
from app.web.draft import Draft
from app.web.sheet import Block, Sheet

if TYPE_CHECKING:
    from app.web.activity.kind import Asked

_FROM = re.compile(r"(.+) \((page|command line|API)\)")
_N_IN_BLOCK = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line. `via` is where it was ordered from; `partition` as it stands in addresses."""

    id: int
    iso_at: str
    clock: str
    who: str
    via: str
    event: str
    partition: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Some entries of one day; `day` is its heading, "" where it stands above already."""

    run_id: int
    day: str
    iso_day: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What may be chosen, and what is."""

    address: str
    choices: tuple[tuple[str, str, tuple[str, ...], str], ...]
    is_filtered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The pages beside this one, "" where there is none; what to say where nothing fits."""

    run_id: int
    older: str
    newest: str
    nothing: str
    is_filtered: bool


def activity_page(
    run: RunFigures,
    asked: "Asked",
    listed: Listing,
    whos: Sequence[str],
    events: Sequence[str],
) -> Sheet:
    """Return the page of a part of the list."""
    draft = Draft(run.at)
    address = f"/runs/{run.run_id}/activity"
    filters = Filters(
        address=address,
        choices=(
            ("who", "Who", *_choices(whos, asked.who)),
            ("event", "What", *_choices(events, asked.event)),
            ("partition", "Partition",
             *_choices([each.name for each in run.partitions], asked.partition)),
        ),
        is_filtered=asked.is_filtered,
    )  # fmt: skip
    about = About(
        run_id=run.run_id,
        older=f"{address}?{asked.query(listed.older_than)}" if listed.older_than else "",
        newest=f"{address}?{asked.query(0)}".rstrip("?") if asked.before else "",
        nothing="" if listed.entries else _nothing(asked, listed),
        is_filtered=asked.is_filtered,
    )
    names = {each.id: each.name for each in run.partitions}
    lines = [
        _entry(each, names.get(each.partition_id, "") if each.partition_id else "", run.at)
        for each in listed.entries
    ]
    children = tuple(_blocks(run.run_id, list(zip(listed.entries, lines, strict=True))))
    entries = Block(id="log", template="activity/log.html", about=about, children=children)
    root = Block(
        id="page",
        template="activity/page.html",
        children=(
            head.signals(draft, run, "Activity"),
            head.banner(draft, run),
            Block(id="log-filters", template="activity/filters.html", about=filters),
            entries,
        ),
    )
    return draft.sheet(root, f"Activity · {words.one_line(run.name)}")


def _choices(known: Sequence[str], chosen: str) -> tuple[tuple[str, ...], str]:
    """Return what can be chosen; what was asked for stands there though nothing has it."""
    more = () if not chosen or chosen in known else (chosen,)
    return (*more, *known), chosen


def _nothing(asked: "Asked", listed: Listing) -> str:
    if asked.is_filtered:
        pairs = (asked.who, asked.event, asked.partition)
        told = " and ".join(f"“{words.one_line(each)}”" for each in pairs if each)
        where = " among the newest" if listed.older_than else ""
        return f"No entry{where} matches {told}."
    return "Nothing is older than that." if asked.before else "Nothing happened yet."


def _entry(entry: Activity, partition: str, now: datetime) -> Entry:
    who = words.one_line(entry.who)
    found = _FROM.fullmatch(who)
    detail = words.one_line(entry.detail).replace(" -> ", " → ")
    return Entry(
        id=entry.id,
        iso_at=iso(entry.at),
        clock=_clock(entry.at.astimezone(), now.astimezone()),
        who=found[1] if found else who,
        via=found[2] if found else "",
        event=words.one_line(entry.event),
        partition=words.one_line(partition),
        detail=detail.removeprefix(f"{partition}: ") if partition else detail,
    )


def _clock(at: datetime, now: datetime) -> str:
    """Return a moment as a browser shows it: with its time, however old it is."""
    short = words.clock_time(at, now)
    return short if short.endswith(f"{at:%H:%M}") else f"{short} {at:%H:%M}"


def _blocks(run_id: int, lines: Sequence[tuple[Activity, Entry]]) -> Iterator[Block]:
    """Give the entries by day and twenty."""
    groups: dict[tuple[str, int], list[Entry]] = {}
    days: dict[str, str] = {}
    for entry, line in lines:
        at = entry.at.astimezone()
        day = f"{at:%Y-%m-%d}"
        days.setdefault(day, f"{at:%A}, {at.day} {at:%B %Y}")
        groups.setdefault((day, entry.id // _N_IN_BLOCK), []).append(line)
    told: set[str] = set()
    for (day, number), entries in groups.items():
        about = Entries(
            run_id=run_id,
            day="" if day in told else days[day],
            iso_day=day,
            entries=tuple(entries),
        )
        told.add(day)
        yield Block(id=f"log-{day}-{number}", template="activity/entries.html", about=about)
