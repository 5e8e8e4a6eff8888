"""What hangs in the gallery: a name for each state, and the sheet that shows it.

Owns the list. To hang another one, add a line.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from app.core.conditions import ConditionKind
from app.core.reasons import Choice
from app.core.types import PartitionId
from app.figures import RunFigures
from app.ledger.activity import Listing
from app.web.activity.entries import activity_page
from app.web.activity.kind import Asked as AskedEntries
from app.web.charted import Charted
from app.web.compare.page import choosing_page, compare_page
from app.web.compare.sides import Side
from app.web.failures.asking import asking_page
from app.web.failures.page import failures_page
from app.web.gallery.invented import (
    AWAY_SERVER,
    CHART,
    HOSTILE,
    NO_CHART,
    NOW,
    RUN,
    SERVER,
    STATES,
    UNKNOWN_SERVER,
    condition,
    entry,
    hostile_run,
)
from app.web.gallery.invented_compare import HOSTILE_SIDE, ONE, OTHER, WITHOUT_FIGURES
from app.web.gallery.invented_huge import HUGE_READ, HUGE_SAMPLE, MANY_SAMPLES
from app.web.gallery.invented_new_run import CHECKS
from app.web.gallery.invented_parts import (
    FAILURES,
    KNOWN,
    LENGTHS,
    NO_FAILURES,
    NOT_MEASURED,
    OPENED,
    SAMPLES,
    TOLD,
)
from app.web.gallery.overviews import (
    DRAWN,
    NOTHING_MATCHES,
    every_pill,
    of_partition,
    shown,
    silent_runner,
)
from app.web.new_run.review import review
from app.web.overview import overview
from app.web.partition.page import partition_page
from app.web.partition.reads import Read
from app.web.partition.table import table
from app.web.runs import runs_page
from app.web.samples.asked import Asked
from app.web.samples.listing import samples_page
from app.web.samples.one import sample_page
from app.web.samples.reading import Found
from app.web.server_page.cards import server_page
from app.web.sheet import Sheet

_OF_RUN = (
    ConditionKind.SERVER_CHANGED,
    ConditionKind.DISK_LOW,
    ConditionKind.STORAGE_SLOW,
    ConditionKind.LEDGER_LOCKED,
    ConditionKind.LEDGER_FULL,
    ConditionKind.NOT_SERVED,
    ConditionKind.ALL_PAUSED,
)
_CHOICES = ((7, RUN.name), (9, OTHER.figures.name), (11, HOSTILE))


def _with(kind: ConditionKind) -> RunFigures:
    return replace(RUN, conditions=(condition(kind),))


def _partition(
    known: Read = KNOWN, drawn: Charted = DRAWN, **changes: object
) -> Callable[[], Sheet]:
    def made() -> Sheet:
        run, one = of_partition(RUN, name="B1_part", **changes)
        if one.n_in_flight and one.speed_tokens_per_s == 0:
            run = replace(run, conditions=(condition(ConditionKind.STALLED),))
        return partition_page(run, one, known, drawn, "6h")

    return made


def _first_partition(run: RunFigures, known: Read = KNOWN) -> Sheet:
    return partition_page(run, run.partitions[0], known, DRAWN, "6h")


def _activity(run: RunFigures, detail: str, n: int) -> Sheet:
    entries = tuple(replace(entry(each, detail), id=each) for each in range(1, n + 1))
    listed = Listing(entries=entries, older_than=0)
    return activity_page(run, AskedEntries(), listed, ["anna (page)"], ["concurrency"])


def _samples(run: RunFigures, asked: Asked, found: Found) -> Sheet:
    named = replace(run, partitions=(replace(run.partitions[0], id=PartitionId(1)),))
    return samples_page(named, asked, found)


def _compared(one: Side, other: Side) -> Sheet:
    return compare_page(_CHOICES, one, other, NOW)


ENTRIES: dict[str, Callable[[], Sheet]] = {
    **{f"overview: {name}": partial(shown, run) for name, run in STATES.items()},
    **{f"overview: {kind}": partial(shown, _with(kind)) for kind in _OF_RUN},
    "overview: every pill": every_pill,
    "overview: runner silent": silent_runner,
    **{name: partial(shown, RUN, view) for name, view in NOTHING_MATCHES.items()},
    "overview: no chart yet": lambda: overview(RUN, Charted(chart=NO_CHART), "15m", []),
    "runs: none": lambda: runs_page([], NOW),
    "runs: many": lambda: runs_page(
        [
            replace(run, run_id=n, name=name)  # type: ignore[arg-type]  # a plain number
            for n, (name, run) in enumerate(STATES.items(), 1)
        ],
        NOW,
        ("webhook chat.internal",),
    ),
    "partition: running": _partition(),
    "partition: stalled": _partition(speed_tokens_per_s=0.0),
    "partition: with a budget": _partition(token_budget_tokens=10_000_000, goal_samples=7_000),
    "partition: nothing measured": _partition(NOT_MEASURED, Charted(chart=NO_CHART)),
    "partition: huge": lambda: _first_partition(STATES["huge"], HUGE_READ),
    "partition: hostile": lambda: _first_partition(hostile_run()),
    "chart as table": lambda: table(RUN, None, CHART, LENGTHS),
    "failures: none": lambda: failures_page(RUN, NO_FAILURES, Choice()),
    "failures: some": lambda: failures_page(RUN, FAILURES, Choice()),
    "failures: asked first": lambda: asking_page(RUN, FAILURES, Choice()),
    "samples: none fits": lambda: _samples(RUN, Asked(q=HOSTILE), Found(samples=())),
    "samples: some": lambda: _samples(RUN, Asked(), Found(samples=tuple(SAMPLES))),
    "samples: many": lambda: _samples(
        RUN, Asked(), Found(samples=MANY_SAMPLES, next=Asked(begin="B1_glaive", after=50))
    ),
    "sample: truncated": lambda: sample_page(RUN, OPENED),
    "sample: huge": lambda: sample_page(RUN, HUGE_SAMPLE),
    "activity: none": lambda: _activity(RUN, "", 0),
    "activity: some": lambda: _activity(RUN, "64 -> 96", 60),
    "activity: hostile": lambda: _activity(hostile_run(), HOSTILE, 3),
    "server: full": lambda: server_page(RUN, {SERVER.url: TOLD}),
    "server: away, and one that tells nothing": lambda: server_page(
        replace(RUN, servers=(AWAY_SERVER, UNKNOWN_SERVER)), {}
    ),
    "compare: which two": lambda: choosing_page(_CHOICES, (0, 0), NOW),
    "compare: two runs": partial(_compared, ONE, OTHER),
    "compare: hostile": partial(_compared, ONE, HOSTILE_SIDE),
    "compare: one without figures": partial(_compared, ONE, WITHOUT_FIGURES),
    **{f"new run, check: {name}": partial(review, one, NOW) for name, one in CHECKS.items()},
}
