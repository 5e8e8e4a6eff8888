"""The pill of a partition that has a condition, where the run says it, and who is needed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.core.conditions import CALM_KINDS, Condition, ConditionKind
from app.core.states import PartitionState, RunState
from app.figures import PartitionFigures, concerns, pressing
from app.web.charted import Charted
from app.web.gallery.invented import CHART, FINISHED, NOW, PARTITION, RUN, numbered
from app.web.overview import overview
from app.web.standing import standing

MINE, OTHER = numbered(PARTITION, PARTITION)


def condition(
    kind: ConditionKind, ratio: float | None = None, partition: str = MINE.name
) -> Condition:
    return Condition(
        kind=kind,
        since=NOW - timedelta(seconds=90),
        sentence=f"{kind} it is.",
        partition=partition,
        ratio=ratio,
    )


def pill(*conditions: Condition, partition: PartitionFigures = MINE) -> tuple[str, str, int]:
    run = replace(RUN, conditions=conditions, partitions=(partition, OTHER))
    found = standing(run, partition)
    return found.kind, found.word, found.rank


@pytest.mark.parametrize(
    ("kind", "ratio", "shown"),
    [
        (ConditionKind.SLOW, 0.529, ("warn", "Slow \N{MINUS SIGN}52 %", 0)),
        (ConditionKind.FAILING, 0.31, ("bad", "Failing 31 %", 0)),
        (ConditionKind.MANY_EMPTY, 1.0, ("bad", "Empty 100 %", 0)),
        (ConditionKind.MANY_MISMATCHED, 0.6, ("bad", "Mismatched 60 %", 0)),
        (ConditionKind.MANY_DEGENERATE, 0.25, ("warn", "Degenerate 25 %", 0)),
        (ConditionKind.MANY_TRUNCATED, 0.8, ("warn", "Truncated 80 %", 0)),
        (ConditionKind.BUDGET_REACHED, None, ("run", "Running", 1)),
    ],
)
def test_a_row_says_its_condition_with_its_figure(
    kind: ConditionKind, ratio: float | None, shown: tuple[str, str, int]
) -> None:
    assert pill(condition(kind, ratio)) == shown
    assert pill(condition(kind, ratio, OTHER.name)) == ("run", "Running", 1)


def test_the_gravest_is_shown_and_a_state_before_it() -> None:
    slow, failing = condition(ConditionKind.SLOW, 0.6), condition(ConditionKind.FAILING, 0.5)

    assert pill(slow, failing)[1] == "Failing 50 %"
    waiting = condition(ConditionKind.WAITING_FOR_SERVER, partition="")
    assert pill(slow, failing, waiting)[1] == "Waiting for server"
    paused = replace(MINE, state=PartitionState.PAUSED, n_in_flight=0)
    assert pill(failing, partition=paused)[1] == "Paused"
    assert pill(failing, partition=replace(FINISHED, name=MINE.name))[1] == "Finished"


def test_what_was_asked_for_needs_nobody() -> None:
    calm = tuple(condition(kind) for kind in sorted(CALM_KINDS))
    run = replace(RUN, conditions=calm)

    assert pressing(run) == []
    assert concerns(run) == concerns(replace(RUN, conditions=()))


def test_a_partition_that_was_paused_for_it_says_it_once() -> None:
    empty = condition(ConditionKind.MANY_EMPTY, 1.0)
    paused = replace(MINE, state=PartitionState.PAUSED, reason=f"{empty.kind}: {empty.sentence}")
    run = replace(RUN, conditions=(empty,), partitions=(paused, OTHER))

    said = [one for one in concerns(run) if "empty" in one]

    assert said == [f"{MINE.name} is paused: many empty: many empty it is."]
    resumed = replace(run, partitions=(MINE, OTHER))
    assert "many empty it is." in concerns(resumed)


def test_another_model_stands_in_the_banner_and_once_among_the_needs() -> None:
    reason = "server changed: http://a model_path x -> y"
    changed = replace(
        condition(ConditionKind.SERVER_CHANGED, partition=""),
        sentence="Server changed: http://a model_path x -> y. Start the old one.",
    )
    run = replace(RUN, state=RunState.PAUSED, reason=reason, conditions=(changed,))

    sheet = overview(run, Charted(chart=CHART), "15m", ())

    assert concerns(run)[0] == changed.sentence
    assert reason not in concerns(run)
    assert sheet.texts["ban-0"] == changed.sentence
    assert sheet.texts["need-0"] == "Server changed, see above"
