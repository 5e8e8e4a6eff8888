"""A chart as a table, for who cannot see it or wants its figures: `/runs/7/chart`.

Drawn once, not live. Owns which rows stand in it: equal pieces of the range, the newest first, and
the bars of output lengths. Invariant: the same words as the read-out of the chart, a dash where
nothing was recorded.
"""

from dataclasses import dataclass
from urllib.parse import quote

from fastapi import Request

from app.clock import iso
from app.controls import find_run
from app.core import format as words
from app.core.histogram import histogram
from app.core.series import Chart
from app.core.spread import Measure, Spread
from app.core.types import PartitionId, RunId
from app.extending.refusing import named
from app.figures import RunFigures
from app.ledger import measures
from app.web import head
from app.web.charted import charted
from app.web.charts import known_range, span_of
from app.web.draft import Draft
from app.web.kinds import Desk, PageKey, PageKind
from app.web.sheet import Block, Sheet
from app.web.wording import DASH, moment, rate, share

_MOST_LINES, _LEAST_S = 60, 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    iso_at: str
    clock: str
    own: str
    server: str
    concurrency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    of: str
    back: str
    span: str
    has_server: bool
    lines: tuple[Line, ...]
    lengths: tuple[tuple[str, str, str], ...]


def table_kind(desk: Desk) -> PageKind:
    def key(request: Request) -> PageKey:
        run, query = find_run(desk.ledger, request.path_params["run"]), request.query_params
        wanted = query.get("partition", "")
        partition = named(desk.ledger, run, wanted).id if wanted else 0
        return ("chart", run.id, partition, known_range(query.get("range", "")))

    def sheet(key: PageKey) -> Sheet | None:
        match key:
            case (_, int(run_id), int(partition), str(chosen)):
                run = desk.service.figures(RunId(run_id))
                partition_id = PartitionId(partition) if partition else None
                chart = _chart(desk, run, partition_id, chosen)
                return table(run, partition_id, chart, _spread(desk, run, partition_id))
        return None

    return PageKind(
        name="chart",
        path="/runs/{run}/chart",
        key=key,
        address=lambda key: f"/runs/{key[1]}/chart?partition={key[2] or ''}&range={key[3]}",
        sheet=sheet,
        is_live=False,
    )


def _chart(desk: Desk, run: RunFigures, partition_id: PartitionId | None, chosen: str) -> Chart:
    """Return the range in pieces of a minute or more, so that each row has a time of its own."""
    drawn = charted(desk, run, chosen, partition_id).chart
    span_s = (drawn.end - drawn.begin).total_seconds()
    n = max(1, min(_MOST_LINES, int(span_s // _LEAST_S)))
    return desk.service.chart(run.run_id, span_s if span_of(chosen) else None, n, partition_id)


def _spread(desk: Desk, run: RunFigures, partition_id: PartitionId | None) -> Spread:
    if partition_id is None:
        return measures.of_run(desk.ledger, run.run_id, Measure.OUTPUT)
    return measures.spread(desk.ledger, partition_id, Measure.OUTPUT)


def table(
    run: RunFigures, partition_id: PartitionId | None, chart: Chart, answers: Spread
) -> Sheet:
    """Return the page of the table; without a partition, of the whole run."""
    draft = Draft(run.at)
    found = [each for each in run.partitions if each.id == partition_id]
    of = words.one_line(found[0].name) if found else "all partitions"
    back = f"/runs/{run.run_id}" + (f"/p/{quote(found[0].name, safe='')}" if found else "")
    about = Table(
        of=of,
        back=back,
        span=words.span((chart.end - chart.begin).total_seconds()),
        has_server=any(value is not None for value in chart.server_tokens_per_s),
        lines=tuple(reversed(_lines(draft, chart))),
        lengths=_lengths(answers, max((each.max_new_tokens for each in run.partitions), default=0)),
    )
    block = Block(id="table", template="partition/table.html", about=about)
    children = (head.signals(draft, run, "", is_live=False), block)
    root = Block(id="page", template="partition/table_page.html", children=children)
    return draft.sheet(root, f"Speed of {of} · {words.one_line(run.name)}")


def _lines(draft: Draft, chart: Chart) -> list[Line]:
    n = len(chart.own_tokens_per_s)
    width = (chart.end - chart.begin) / max(1, n)

    def at(values: tuple[float | None, ...], place: int) -> float | None:
        return values[place] if place < len(values) else None

    lines = []
    for place, own in enumerate(chart.own_tokens_per_s):
        middle = chart.begin + width * (place + 0.5)
        wanted = at(chart.concurrency_requests, place)
        server = at(chart.server_tokens_per_s, place)
        if own is None and wanted is None and server is None:
            continue
        lines.append(
            Line(
                iso_at=iso(middle),
                clock=moment(middle, draft.now),
                own=rate(own),
                server=rate(server),
                concurrency=DASH if wanted is None else f"{wanted:,.0f}",
            )
        )
    return lines


def _lengths(answers: Spread, cap: int) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (f"{bar.least:,} – {bar.upper:,}", f"{bar.n:,}", share(bar.n, answers.n))
        for bar in histogram(answers, cap)
        if answers.n
    )
