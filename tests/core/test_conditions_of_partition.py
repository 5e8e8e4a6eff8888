"""Slow, draining, budget reached: each begins, keeps its beginning, and ends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.core.conditions import Condition, ConditionKind
from app.core.conditions_of_outcomes import Outcomes, Share
from app.core.conditions_of_partition import BesideBest, PartitionFacts, partition_conditions
from app.core.thresholds import RunThresholds

START = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
LIMITS = RunThresholds(slow_ratio=0.5, slow_after_s=600)
FACTS = PartitionFacts(name="B1_chat", n_in_flight=9)
SLOW = replace(
    FACTS, beside_best=BesideBest(tokens_per_s=240, best_tokens_per_s=500, below_since=START)
)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def found(
    facts: PartitionFacts, seconds: float, before: tuple[Condition, ...] = ()
) -> tuple[Condition, ...]:
    return partition_conditions(facts, LIMITS, at(seconds), before)


def kinds(conditions: tuple[Condition, ...]) -> list[ConditionKind]:
    return [one.kind for one in conditions]


def test_srv_03_slow_begins_once_it_has_lasted_and_says_how_much_is_missing() -> None:
    assert found(SLOW, 599) == ()
    (slow,) = found(SLOW, 600)

    assert (slow.kind, slow.partition, slow.since) == (ConditionKind.SLOW, "B1_chat", START)
    assert slow.ratio == 0.52
    assert "slow for 10m" in slow.sentence
    assert "240 tok/s now, 500 tok/s at its best" in slow.sentence


def test_srv_03_slow_ends_above_its_share_with_a_margin() -> None:
    before = found(SLOW, 600)
    nearly = replace(SLOW, beside_best=BesideBest(tokens_per_s=299, best_tokens_per_s=500))

    (still,) = found(nearly, 700, before)
    assert still.since == START
    well = replace(SLOW, beside_best=BesideBest(tokens_per_s=300, best_tokens_per_s=500))
    assert found(well, 701, before) == ()


def test_slow_is_not_said_of_what_does_not_work_or_is_not_known() -> None:
    before = found(SLOW, 600)

    for facts in (
        replace(SLOW, beside_best=None),
        replace(SLOW, is_working=False),
        replace(SLOW, is_watched=False),
    ):
        assert found(facts, 700, before) == ()


def test_draining_holds_from_the_order_to_the_last_request() -> None:
    facts = replace(FACTS, draining_since=at(5), is_working=False)

    (draining,) = found(facts, 8)

    assert (draining.kind, draining.since) == (ConditionKind.DRAINING, at(5))
    assert "9 requests to finish" in draining.sentence
    assert found(replace(facts, draining_since=None), 9, (draining,)) == ()


def test_budget_reached_says_what_is_left_and_ends_with_a_higher_one() -> None:
    facts = replace(FACTS, is_watched=False, n_left=1_240, used_tokens=12_000_000)

    (reached,) = first = found(facts, 0)
    assert reached.kind is ConditionKind.BUDGET_REACHED
    assert "12M tokens; 1,240 samples are left" in reached.sentence
    assert found(facts, 60, first)[0].since == START
    assert found(replace(facts, n_left=0), 61, first) == ()

    (of_run,) = found(replace(facts, n_left=1, has_own_budget=False), 0)
    assert of_run.sentence.startswith("The run's token budget is reached")
    assert "1 sample is left. Raise the run's." in of_run.sentence


def test_a_partition_that_is_over_has_no_other() -> None:
    outcomes = Outcomes(failed=Share(n=100, n_bad=50), truncated=Share(n=30, n_bad=30))
    facts = replace(SLOW, outcomes=outcomes)
    assert len(found(facts, 600)) == 3

    assert found(replace(facts, is_watched=False), 600) == ()


def test_what_another_partition_has_is_not_its_own() -> None:
    other = tuple(replace(one, partition="B2_code") for one in found(SLOW, 600))

    (slow,) = found(
        replace(
            SLOW, beside_best=BesideBest(tokens_per_s=1, best_tokens_per_s=500, below_since=at(100))
        ),
        700,
        other,
    )

    assert slow.since == at(100)
