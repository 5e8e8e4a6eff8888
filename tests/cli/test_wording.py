"""What headline and lines say of a run: standstill, outcomes, samples and ends."""

import pytest

from app.cli.foreground import tell_end
from app.cli.options import EXIT_FAILED_SAMPLES
from app.core.conditions import Condition, ConditionKind
from app.core.estimate import Estimate, Unknown
from app.core.states import PartitionState, RunState
from app.core.types import Counts
from app.figures import outcomes
from app.figures.wording import headline, summary
from tests.cli.test_terminal import NOW, partition, run


def condition(kind: ConditionKind, sentence: str) -> Condition:
    return Condition(kind=kind, since=NOW, sentence=sentence)


def test_a_run_that_nothing_serves_needs_you_and_says_how_it_goes_on() -> None:
    why = condition(ConditionKind.NOT_SERVED, "no service serves this home; go on with: x")
    text = "\n".join(summary(run(conditions=(why,), is_served=False, speed_tokens_per_s=None)))
    since = f"{NOW.astimezone():%H:%M}"
    assert f"night: not running since {since}: no service serves this home; go on with" in text
    assert "needs you" in text
    assert "nothing needs you" not in text
    assert "active" not in text
    assert text.count("go on with") == 1


def test_a_paused_run_needs_you_and_its_rows_say_it_once() -> None:
    why = condition(ConditionKind.ALL_PAUSED, "all that is left is paused; go on with: x")
    paused = Unknown(why="paused")
    rows = (
        partition("B1_x", time_left=paused, speed_tokens_per_s=None),
        partition("B2_x", time_left=paused, state=PartitionState.PAUSED, speed_tokens_per_s=None),
    )
    figures = run(conditions=(why,), state=RunState.PAUSED, time_left=paused, partitions=rows)
    lines = summary(figures)
    assert "night: paused: all that is left is paused; go on with: x; 42 %" in lines[0]
    assert lines[0].endswith("; needs you")
    assert [line.count("paused") for line in lines[1:]] == [1, 1]
    assert not any("active" in line for line in lines)


def test_most_rejected_or_truncated_needs_you() -> None:
    rejecting = partition("A", counts=Counts(rejected=3_000, ok=2_000))
    cut = partition("B", counts=Counts(truncated=15, ok=10))
    few = partition("C", counts=Counts(truncated=15, pending=10))
    told = summary(run(partitions=(rejecting, cut)))
    assert "  3,000 of 5,000 records of A are rejected" in told[1]
    assert "  15 of 25 answers of B are truncated" in told[2]
    assert headline(run(partitions=(few,))).endswith("nothing needs you")


@pytest.mark.parametrize(
    ("changes", "cell"),
    [
        ({"counts": Counts(ok=93), "goal_samples": 50}, "93/93 (goal 50) samples"),
        ({"counts": Counts(ok=20, pending=80), "goal_samples": 50}, "20/50 samples"),
        ({"counts": Counts(ok=1_000, rejected=3_000, pending=9_000)}, "1,000/10,000 samples"),
        ({"counts": Counts(), "is_over": True}, ", no records,"),
    ],
)
def test_samples_are_what_is_kept_of_what_can_be(changes: dict[str, object], cell: str) -> None:
    assert cell in summary(run(partitions=(partition("A", **changes),)))[1]


def test_no_end_is_shown_where_nothing_is_left() -> None:
    nothing = Estimate(low_s=0.0, mid_s=0.0, high_s=0.0)
    assert "done at" not in headline(run(time_left=nothing))


def test_nothing_left_is_said_once() -> None:
    nothing = Estimate(low_s=0.0, mid_s=0.0, high_s=0.0)
    drained = partition("A", time_left=nothing, state=PartitionState.DRAINING)
    line = summary(run(partitions=(drained,)))[1]
    assert "nothing left," in line
    assert "left left" not in line


def test_the_last_line_tells_what_ended_otherwise_and_where(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = {"A": Counts(ok=5, rejected=3_000), "B": Counts(truncated=7, failed=1)}
    assert tell_end(RunState.FINISHED, "", counts, where="out") == EXIT_FAILED_SAMPLES
    told = capsys.readouterr().out
    assert "Finished with 1 failed sample; 12 answers in out" in told
    assert "; 3,000 rejected, see out/A/rejected.jsonl; " in told
    assert "; 7 truncated (cut at max_new_tokens). " in told


def test_outcomes_that_are_not_the_rule_are_told() -> None:
    counts = Counts(ok=9, rejected=3_000, truncated=7, suspect=2, empty=1)
    assert outcomes(counts) == [
        "3,000 rejected",
        "7 truncated (cut at max_new_tokens)",
        "2 suspect",
        "1 empty",
    ]
    assert outcomes(Counts(ok=9, failed=1)) == []
