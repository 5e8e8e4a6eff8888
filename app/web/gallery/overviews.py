"""Overviews that need more than the figures of one state: every pill, a view, a silent runner.

Owns how they are put together. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from app.core.conditions import Condition, ConditionKind
from app.core.conditions_of_run import RunFacts, Thresholds, run_conditions
from app.core.states import PartitionState
from app.core.types import Counts, PartitionId, Tokens
from app.figures import PartitionFigures, RunFigures
from app.web.charted import Charted
from app.web.disk import Disk
from app.web.filtering import Listing, View
from app.web.gallery.invented import (
    BUDGET_USED,
    CHART,
    DRAINING,
    FAILING,
    FINISHED,
    HOSTILE,
    NOW,
    PARTITION,
    PAUSED,
    RUN,
    SCANNING,
    STATES,
    condition,
    entry,
    numbered,
)
from app.web.gallery.invented_parts import LENGTHS
from app.web.lengths import Answers
from app.web.overview import overview
from app.web.sheet import Sheet

# views that show no row; the script reads them from the address
NOTHING_MATCHES = {
    "overview: filter matches nothing": View(q="foo", state="attention"),
    "overview: filter matches nothing, hostile": View(q=HOSTILE),
}
DRAWN = Charted(
    chart=CHART,
    answers=Answers(lengths=LENGTHS, n_cut=12),
    disk=Disk(
        n_tokens=251_000_000,
        band=(240_000_000, 262_000_000),
        hidden_size=7_168,
        free_bytes=9_200_000_000_000,
    ),
)
V = TypeVar("V")
_SILENT_S = 130.0
_OF_PARTITION = (
    ConditionKind.SLOW,
    ConditionKind.FAILING,
    ConditionKind.MANY_TRUNCATED,
    ConditionKind.MANY_DEGENERATE,
    ConditionKind.MANY_EMPTY,
    ConditionKind.MANY_MISMATCHED,
)
_WAITING = replace(
    PARTITION,
    percent=0,
    n_in_flight=0,
    counts=Counts(pending=7_000),
    tokens=Tokens(),
    speed_tokens_per_s=None,
    spark_tokens_per_s=(),
)
# what a row of a run at work can say beside those
_AT_WORK = (
    PARTITION,
    FAILING,
    _WAITING,
    replace(_WAITING, concurrency_requests=0),
    replace(_WAITING, intake="scanned"),
    SCANNING,
    DRAINING,
    replace(PARTITION, state=PartitionState.PAUSED, n_in_flight=9),
    PAUSED,
    replace(FINISHED, sealed_at=None),
    BUDGET_USED,
    FINISHED,
)
# what all rows of a run say at once; each is shown by one row
_WHOLE = ("stalled", "server away", "stopping", "stopped")


def shown(run: RunFigures, view: View | None = None) -> Sheet:
    """Return the overview of invented figures, all of it or what a view shows."""
    listing = Listing(view=view or View())
    return overview(run, DRAWN, "6h", [entry(n) for n in range(1, 6)], listing)


def every_pill() -> Sheet:
    """Return an overview with a row for each pill that there is, of whatever run it is."""
    rows = numbered(*[PARTITION] * len(_OF_PARTITION), *_AT_WORK)
    held = tuple(
        Condition(
            kind=kind,
            since=condition(kind).since,
            sentence=f"{row.name} is {kind}.",
            partition=row.name,
            ratio=0.52,
        )
        for kind, row in zip(_OF_PARTITION, rows, strict=False)
    )
    sheet = shown(replace(RUN, partitions=rows, conditions=held))
    return _with_rows(sheet, [_one_row(name, n) for n, name in enumerate(_WHOLE, len(rows) + 1)])


def silent_runner() -> Sheet:
    """Return the overview of a run whose runner has recorded nothing, and lives no more."""
    silent_since = NOW - timedelta(seconds=_SILENT_S)
    facts = RunFacts(not_served_since=silent_since, serve_command="longwatch serve --home night")
    conditions = run_conditions(facts, Thresholds(), NOW)
    return shown(replace(RUN, heartbeat_at=silent_since, conditions=conditions))


def of_partition(run: RunFigures, **changes: object) -> tuple[RunFigures, PartitionFigures]:
    """Return a run with its first partition alone, changed, and this partition."""
    one = replace(run.partitions[0], **changes)  # type: ignore[arg-type]  # fields by name
    return replace(run, partitions=(one,)), one


def _one_row(state: str, n: int) -> Sheet:
    run, _ = of_partition(STATES[state], id=PartitionId(n), name=f"B{n}_{state.replace(' ', '_')}")
    return shown(run)


def _with_rows(sheet: Sheet, others: Sequence[Sheet]) -> Sheet:
    """Return an overview with the rows of others below its own; their ids differ."""
    children = sheet.root.children
    place = next(n for n, child in enumerate(children) if child.id == "rows")
    own = children[place]
    more = [other.root.children[place].children for other in others]
    rows = replace(own, children=(*own.children, *(row for each in more for row in each)))
    every = (*others, sheet)
    return replace(
        sheet,
        root=replace(sheet.root, children=(*children[:place], rows, *children[place + 1 :])),
        texts=_joined(each.texts for each in every),
        attrs=_joined(each.attrs for each in every),
        paths=_joined(each.paths for each in every),
    )


def _joined(several: Iterable[Mapping[str, V]]) -> dict[str, V]:
    """Return all in one; of what several have, the last."""
    return {name: value for each in several for name, value in each.items()}
