"""What a chart is drawn from: speeds of the recorder, marks of the activity, read now and then.

Owns how often: the line, its scale and its marks are made together each 15 seconds at most, which
is how often a line is sent, so that on a page that lives all of a chart moves at once.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from app.core.series import Chart
from app.core.types import PartitionId
from app.figures import RunFigures
from app.ledger import activity
from app.web.charts import N_BUCKETS, span_of
from app.web.disk import Disk, read_disk
from app.web.kinds import Desk
from app.web.lengths import NO_ANSWERS, Answers, of_run
from app.web.marks import EVENTS, Mark, marks

_FRESH_S = 15.0
_LEAST_SPAN_S = 120.0
_TOLD_WITHIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charted:
    """A chart with its marks; of a whole run also how long its answers are, and what they take."""

    chart: Chart
    marks: tuple[Mark, ...] = ()
    answers: Answers = NO_ANSWERS
    disk: Disk | None = None


def charted(
    desk: Desk, figures: RunFigures, chosen: str, partition_id: PartitionId | None = None
) -> Charted:
    """Return the chart of a range with its marks: of the whole run, or of one partition."""

    def made() -> Charted:
        span_s = _span_s(figures, chosen)
        chart = desk.service.chart(figures.run_id, span_s, N_BUCKETS, partition_id)
        until = chart.end + _TOLD_WITHIN  # the end of what held is told a little later
        entries = activity.within(desk.ledger, figures.run_id, chart.begin, until, EVENTS)
        names = {each.id: each.name for each in figures.partitions}
        drawn = Charted(chart=chart, marks=marks(entries, names, partition_id))
        if partition_id is not None:
            return drawn
        answers = of_run(desk.ledger, figures.run_id)
        return replace(drawn, answers=answers, disk=read_disk(desk, figures))

    return desk.fresh.get(("chart", figures.run_id, chosen, partition_id), _FRESH_S, made)


def _span_s(figures: RunFigures, chosen: str) -> float | None:
    """Return the span of the chart: of a young run only what there is of it."""
    span_s = span_of(chosen)
    if span_s is None or figures.created_at is None:
        return span_s
    age_s = (figures.at - figures.created_at) / timedelta(seconds=1)
    return min(span_s, max(age_s, _LEAST_SPAN_S))
