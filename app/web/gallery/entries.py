"""What hangs in the gallery: a name for each state, and the sheet that shows it.

Owns the list. To hang another one, add a line.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from app.core.conditions import Condition, ConditionKind
from app.core.reasons import Choice
from app.core.states import PartitionState
from app.core.types import Counts, PartitionId
from app.figures import PartitionFigures, RunFigures
from app.ledger.activity import Listing
from app.web.activity.entries import activity_page
from app.web.activity.kind import Asked as AskedEntries
from app.web.charted import Charted
from app.web.compare.page import choosing_page
from app.web.failures.asking import asking_page
from app.web.failures.page import failures_page
from app.web.gallery.invented import (
    AWAY_SERVER,
    CHART,
    HOSTILE,
    NO_CHART,
    NOW,
    PARTITION,
    PAUSED,
    RUN,
    SERVER,
    STATES,
    UNKNOWN_SERVER,
    condition,
    entry,
    hostile_run,
    numbered,
)
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
from app.web.lengths import Answers
from app.web.overview import overview
from app.web.partition.page import partition_page
from app.web.partition.reads import Read
from app.web.runs import runs_page
from app.web.samples.asked import Asked
from app.web.samples.listing import samples_page
from app.web.samples.one import sample_page
from app.web.samples.reading import Found
from app.web.server_page.cards import server_page
from app.web.sheet import Sheet

_OF_PARTITION = (
    ConditionKind.SLOW,
    ConditionKind.FAILING,
    ConditionKind.MANY_TRUNCATED,
    ConditionKind.MANY_DEGENERATE,
    ConditionKind.MANY_EMPTY,
    ConditionKind.MANY_MISMATCHED,
)
_OF_RUN = (
    ConditionKind.SERVER_CHANGED,
    ConditionKind.DISK_LOW,
    ConditionKind.STORAGE_SLOW,
    ConditionKind.LEDGER_LOCKED,
    ConditionKind.LEDGER_FULL,
    ConditionKind.NOT_SERVED,
    ConditionKind.ALL_PAUSED,
)
_DRAWN = Charted(chart=CHART, answers=Answers(lengths=LENGTHS, n_cut=12))
_OF_THIS = "B1_part"


def _overview(run: RunFigures) -> Sheet:
    entries = [entry(n) for n in range(1, 6)]
    return overview(run, _DRAWN, "6h", entries)


def _pills() -> RunFigures:
    """Return a run with a partition in each state that a row can show beside STATES' own."""
    rows = numbered(
        *[PARTITION] * len(_OF_PARTITION),
        replace(PARTITION, n_in_flight=0, concurrency_requests=0, counts=Counts(pending=7_000)),
        replace(PARTITION, state=PartitionState.PAUSED, n_in_flight=9),
        replace(PARTITION, is_over=True, sealed_at=None, n_in_flight=0, counts=Counts(ok=9_990)),
        replace(PARTITION, intake="scanned", n_in_flight=0, counts=Counts(pending=7_000)),
        PAUSED,
    )
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
    return replace(RUN, partitions=rows, conditions=held)


def _with(kind: ConditionKind) -> RunFigures:
    return replace(RUN, conditions=(condition(kind),))


def _partition(
    known: Read = KNOWN, drawn: Charted = _DRAWN, **changes: object
) -> Callable[[], Sheet]:
    def made() -> Sheet:
        one: PartitionFigures = replace(PARTITION, name=_OF_THIS, **changes)  # type: ignore[arg-type]  # fields by name
        run = replace(RUN, partitions=(one,))
        if one.n_in_flight and one.speed_tokens_per_s == 0:
            run = replace(run, conditions=(condition(ConditionKind.STALLED),))
        return partition_page(run, one, known, drawn, "6h")

    return made


def _hostile_partition() -> Sheet:
    run = hostile_run()
    return partition_page(run, run.partitions[0], KNOWN, _DRAWN, "6h")


def _activity(run: RunFigures, detail: str, n: int) -> Sheet:
    entries = tuple(replace(entry(each, detail), id=each) for each in range(1, n + 1))
    listed = Listing(entries=entries, older_than=0)
    return activity_page(run, AskedEntries(), listed, ["anna (page)"], ["concurrency"])


def _samples(run: RunFigures, *, asked: Asked, is_empty: bool) -> Sheet:
    found = Found(samples=() if is_empty else tuple(SAMPLES))
    named = replace(run, partitions=(replace(run.partitions[0], id=PartitionId(1)),))
    return samples_page(named, asked, found)


ENTRIES: dict[str, Callable[[], Sheet]] = {
    **{f"overview: {name}": partial(_overview, run) for name, run in STATES.items()},
    **{f"overview: {kind}": partial(_overview, _with(kind)) for kind in _OF_RUN},
    "overview: every pill": lambda: _overview(_pills()),
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
    "partition: hostile": _hostile_partition,
    "failures: none": lambda: failures_page(RUN, NO_FAILURES, Choice()),
    "failures: some": lambda: failures_page(RUN, FAILURES, Choice()),
    "failures: asked first": lambda: asking_page(RUN, FAILURES, Choice()),
    "samples: none fits": lambda: _samples(RUN, asked=Asked(q=HOSTILE), is_empty=True),
    "samples: some": lambda: _samples(RUN, asked=Asked(), is_empty=False),
    "sample: truncated": lambda: sample_page(RUN, OPENED),
    "activity: none": lambda: _activity(RUN, "", 0),
    "activity: some": lambda: _activity(RUN, "64 -> 96", 60),
    "activity: hostile": lambda: _activity(hostile_run(), HOSTILE, 3),
    "server: full": lambda: server_page(RUN, {SERVER.url: TOLD}),
    "server: away, and one that tells nothing": lambda: server_page(
        replace(RUN, servers=(AWAY_SERVER, UNKNOWN_SERVER)), {}
    ),
    "compare: which two": lambda: choosing_page(((1, "night"), (2, HOSTILE)), (0, 0), NOW),
}
