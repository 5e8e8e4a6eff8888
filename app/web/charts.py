"""The chart of speed over time: ranges, axes, lines, a strip of concurrency, and marks.

Owns the ranges that can be asked for, how an axis is labelled, and the words in which one moment is
read. Pure. Invariants: labels and marks stand around or over the drawing, never inside it: a
stretched drawing would squeeze them; the scale of a line is part of the structure, so that line
and labels never come apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.clock import iso
from app.core import format as words
from app.core.series import Chart
from app.figures import RunFigures
from app.web.draft import Draft
from app.web.lines import axis, band_path, chart_path, nice_top, steps_path
from app.web.marks import Mark
from app.web.sheet import Block
from app.web.wording import moment, rate

N_BUCKETS = 160
_N_LABELS = 5
_LEVEL_PX, _N_LEVELS, _APART = 20, 3, 0.025
# name in the address, seconds; "all" is since the run was created
RANGES = {"15m": 900.0, "1h": 3_600.0, "6h": 21_600.0, "24h": 86_400.0, "all": None}
_SHOWN = {"15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h", "all": "all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    name: str
    label: str
    address: str
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMark:
    number: int
    entry_id: int
    iso_at: str
    clock: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The structure of the chart; `top` and `top_requests` are the upper edges of its scales.

    `n_steps`: into how many steps of a round number the scale of the speed is cut.
    """

    run_id: int
    of: str
    ranges: tuple[Range, ...]
    table: str
    n_buckets: int
    top: float
    n_steps: int
    top_requests: int
    has_server: bool
    has_away: bool
    marks: tuple[ShownMark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a chart stands: `of` what it is, the addresses of its page and its table."""

    of: str
    address: str
    table: str
    rest: str = ""


def span_of(name: str) -> float | None:
    """Return the seconds of a range; 15 minutes for a name that is none."""
    return RANGES.get(name, RANGES["15m"])


def known_range(name: str) -> str:
    return name if name in RANGES else "15m"


def run_place(run_id: int, chosen: str, rest: str = "") -> Place:
    """Return the place of the chart of a whole run; `rest` follows the range in its address."""
    address = f"/runs/{run_id}"
    table = f"{address}/chart?range={chosen}"
    return Place(of="all partitions", address=address, table=table, rest=rest)


def chart(
    draft: Draft,
    run: RunFigures,
    data: Chart,
    chosen: str,
    marks: Sequence[Mark] = (),
    place: Place | None = None,
) -> Block:
    """Return the chart with one range chosen; `place` is left out for that of the whole run."""
    own, server = data.own_tokens_per_s, data.server_tokens_per_s
    highest = max((value for value in (*own, *server) if value is not None), default=0.0)
    top, n_steps = axis(highest)
    wanted = [value for value in data.concurrency_requests if value is not None]
    top_requests = round(nice_top(max(wanted))) if wanted else 0
    has_server = any(value is not None for value in server)
    draft.path("ch-own", chart_path(own, top))
    if has_server:
        draft.path("ch-srv", chart_path(server, top))
    if top_requests:
        draft.path("ch-con", steps_path(data.concurrency_requests, top_requests))
    if data.aways:
        draft.path("ch-away", band_path((_x(data, one), _x(data, two)) for one, two in data.aways))
    for n in range(n_steps + 1):
        draft.text(f"ch-y{n}", words.tokens(top * (n_steps - n) / n_steps))
    _moments(draft, data)
    _reading(draft, data, chosen)
    for n, (x, level) in enumerate(_levels([_x(data, mark.at) for mark in marks]), 1):
        draft.attr(f"ch-m{n}", x=f"{100 * x:.1f}%", y=str(level * _LEVEL_PX))
    place = place or run_place(run.run_id, chosen)
    about = Plot(
        run_id=run.run_id,
        of=place.of,
        ranges=tuple(
            Range(
                name=name,
                label=_SHOWN[name],
                address=f"{place.address}?range={name}{place.rest}",
                is_current=name == chosen,
            )
            for name in RANGES
        ),
        table=place.table,
        n_buckets=max(1, len(own)),
        top=top,
        n_steps=n_steps,
        top_requests=top_requests,
        has_server=has_server,
        has_away=bool(data.aways),
        marks=tuple(
            ShownMark(
                number=n,
                entry_id=mark.entry_id,
                iso_at=iso(mark.at),
                clock=moment(mark.at, draft.now),
                says=mark.says,
            )
            for n, mark in enumerate(marks, 1)
        ),
    )
    return Block(id="chart", template="overview/chart.html", about=about)


def _moments(draft: Draft, data: Chart) -> None:
    last = None
    for n in range(_N_LABELS):
        at = data.begin + (data.end - data.begin) * n / (_N_LABELS - 1)
        minute = at.replace(second=0, microsecond=0)
        draft.clock(f"ch-x{n}", None if minute == last else minute)
        last = minute


def _reading(draft: Draft, data: Chart, chosen: str) -> None:
    """Say the newest moment, which a reader moves away from, and what the chart shows in all."""
    places = [n for n, value in enumerate(data.own_tokens_per_s) if value is not None]
    newest = places[-1] if places else max(0, len(data.own_tokens_per_s) - 1)
    said = f"newest {_width(data)}: {reading(data, newest)}" if places else "nothing recorded yet"
    draft.text("ch-out", said)
    draft.attr(
        "ch-box",
        aria_valuenow=str(newest),
        aria_valuetext=said,
        data_begin=iso(data.begin),
        data_end=iso(data.end),
    )
    draft.text("ch-said", _said(data, chosen))


def _width(data: Chart) -> str:
    """Return over how much time a point is a mean: the tile beside it tells a whole minute's."""
    each = (data.end - data.begin) / max(1, len(data.own_tokens_per_s))
    return words.span(max(1, round(each / timedelta(seconds=1))))


def reading(data: Chart, n: int) -> str:
    """Return what one bucket of a chart says, in words."""
    own = _at(data.own_tokens_per_s, n)
    server = _at(data.server_tokens_per_s, n)
    wanted = _at(data.concurrency_requests, n)
    said = ["nothing recorded" if own is None else f"{rate(own)} tok/s"]
    if server is not None:
        said.append(f"server {rate(server)}")
    if wanted is not None:
        said.append(f"concurrency {wanted:,.0f}")
    return ", ".join(said)


def _at(values: Sequence[float | None], n: int) -> float | None:
    return values[n] if 0 <= n < len(values) else None


def _x(data: Chart, at: datetime) -> float:
    """Return where a moment stands in the range: 0 at its begin, 1 at its end."""
    whole = (data.end - data.begin) / timedelta(seconds=1)
    part = (at - data.begin) / timedelta(seconds=1)
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0


def _levels(places: Sequence[float]) -> list[tuple[float, int]]:
    """Return each place with a level, so that neighbours do not cover each other.

    >>> _levels([0.1, 0.11, 0.12, 0.13, 0.5])
    [(0.1, 0), (0.11, 1), (0.12, 2), (0.13, 0), (0.5, 0)]
    """
    found: list[tuple[float, int]] = []
    for x in places:
        near = found and x - found[-1][0] < _APART
        found.append((x, (found[-1][1] + 1) % _N_LEVELS if near else 0))
    return found


def _said(data: Chart, chosen: str) -> str:
    known = [value for value in data.own_tokens_per_s if value is not None]
    span = words.span((data.end - data.begin) / timedelta(seconds=1))
    if not known:
        return f"Generated tokens per second, {_SHOWN[chosen]}: nothing recorded yet."
    return (
        f"Generated tokens per second over {span}: now {rate(known[-1])},"
        f" lowest {rate(min(known))}, highest {rate(max(known))}."
    )
