"""How the last answers ended: each condition, when it begins, when it ends, when it pauses."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.conditions import Condition, ConditionKind, by_key
from app.core.conditions_of_outcomes import Outcomes, Share, outcome_conditions
from app.core.thresholds import RunThresholds

START = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
LIMITS = RunThresholds()
# kind, field of the outcomes, window, least bad ones of a full window, most at which it has ended
RULES = [
    (ConditionKind.MANY_MISMATCHED, "mismatched", 20, 11, 8),
    (ConditionKind.MANY_EMPTY, "empty", 20, 11, 8),
    (ConditionKind.FAILING, "failed", 100, 11, 8),
    (ConditionKind.MANY_DEGENERATE, "suspect", 50, 11, 8),
    (ConditionKind.MANY_TRUNCATED, "truncated", 30, 16, 12),
]


def found(
    outcomes: Outcomes,
    seconds: float = 0.0,
    before: tuple[Condition, ...] = (),
    limits: RunThresholds = LIMITS,
) -> tuple[Condition, ...]:
    now = START + timedelta(seconds=seconds)
    return tuple(outcome_conditions("B1_chat", outcomes, limits, now, by_key(before)))


def seen(field: str, n: int, n_bad: int) -> Outcomes:
    return replace(Outcomes(), **{field: Share(n=n, n_bad=n_bad)})  # type: ignore[arg-type] # by name


@pytest.mark.parametrize(("kind", "field", "window", "begins", "ends"), RULES)
def test_each_begins_above_its_share_and_ends_with_a_margin(
    kind: ConditionKind, field: str, window: int, begins: int, ends: int
) -> None:
    assert found(seen(field, window, begins - 1)) == ()
    (one,) = first = found(seen(field, window, begins))
    assert (one.kind, one.partition, one.since) == (kind, "B1_chat", START)
    assert one.sentence.startswith(f"{begins} of the last {window} ")
    assert one.ratio == begins / window

    (still,) = found(seen(field, window, ends + 1), 60, first)
    assert still.since == START
    assert found(seen(field, window, ends), 61, (still,)) == ()
    assert found(seen(field, window, begins - 1), 62) == ()  # and begins only above it again


@pytest.mark.parametrize(("kind", "field", "window", "begins", "ends"), RULES)
def test_of_a_window_that_is_not_full_only_what_is_certain_is_said(
    kind: ConditionKind, field: str, window: int, begins: int, ends: int
) -> None:
    assert found(seen(field, begins - 1, begins - 1)) == ()
    said = [one.kind for one in found(seen(field, begins, begins))]
    # the empty ones end first of all that began together: they need their whole window
    assert said == ([] if kind is ConditionKind.MANY_EMPTY else [kind])
    assert ends < begins


def test_srv_11_empty_ones_that_end_first_say_nothing_before_as_many_ended_as_are_in_flight() -> (
    None
):
    early = replace(seen("empty", 20, 16), n_in_flight=150)

    assert found(early) == ()
    late = replace(early, empty=Share(n=150, n_bad=80))
    assert [one.kind for one in found(late)] == [ConditionKind.MANY_EMPTY]


@pytest.mark.parametrize(
    ("field", "since"), [("empty", "n_ended_since"), ("mismatched", "n_answers_since")]
)
def test_srv_11_a_whole_window_since_it_was_set_going_is_waste(field: str, since: str) -> None:
    all_bad = replace(seen(field, 20, 20), n_in_flight=2)

    def wastes(**changes: object) -> bool:
        (one,) = found(replace(all_bad, **changes))  # type: ignore[arg-type] # by name
        return one.wastes

    assert not wastes(**{since: 19})  # so a person who resumes it is not overruled at once
    assert wastes(**{since: 20})
    assert not wastes(**{since: 20, "is_working": False})
    assert not wastes(**{since: 149, "n_in_flight": 150, field: Share(n=150, n_bad=149)})
    full = replace(all_bad, n_ended_since=20, n_answers_since=20)
    (kept,) = found(full, limits=replace(LIMITS, auto_pause=False))
    assert not kept.wastes


def test_what_only_holds_by_its_margin_is_no_waste() -> None:
    before = found(replace(seen("empty", 20, 11), n_ended_since=20))
    assert before[0].wastes

    (one,) = found(replace(seen("empty", 20, 9), n_ended_since=20), 5, before)

    assert not one.wastes


@pytest.mark.parametrize("field", ["failed", "suspect", "truncated"])
def test_others_never_pause(field: str) -> None:
    (one,) = found(replace(seen(field, 200, 200), n_ended_since=200, n_answers_since=200))

    assert not one.wastes


def test_several_stand_with_the_gravest_first() -> None:
    outcomes = Outcomes(failed=Share(n=100, n_bad=40), truncated=Share(n=30, n_bad=20))

    assert [one.kind for one in found(outcomes)] == [
        ConditionKind.FAILING,
        ConditionKind.MANY_TRUNCATED,
    ]


@given(st.lists(st.integers(0, 100), min_size=2, max_size=60))
def test_at_the_edge_nothing_flaps(shares: list[int]) -> None:
    """It changes only when the share goes from above the bound to below the margin, or back."""
    before: tuple[Condition, ...] = ()
    for n_bad in shares:
        now = found(seen("failed", 100, n_bad), 1, before)
        assert bool(now) == (n_bad > 10 or (bool(before) and n_bad > 8))
        before = now
