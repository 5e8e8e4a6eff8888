"""How a deadline is written, what is due, and what was stopped by one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.deadlines import (
    DeadlineError,
    Due,
    deadline_problem,
    due,
    is_by_deadline,
    is_spent,
    parse_deadline,
    reason_of,
    shown,
)
from app.core.states import PartitionState, RunState
from app.core.types import Counts, PartitionId, RunId
from app.core.views import RunView
from tests.core.test_supervision import part, with_facts

EVENING = datetime(2026, 11, 30, 21, 30, tzinfo=UTC)  # 22:30 in Berlin
BERLIN = ZoneInfo("Europe/Berlin")
HOUR = timedelta(hours=1)


def in_berlin(moment: datetime) -> datetime:
    return moment.replace(tzinfo=BERLIN) if moment.tzinfo is None else moment.astimezone(BERLIN)


berlin = partial(parse_deadline, localize=in_berlin)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("08:00", "2026-12-01T08:00:00+01:00"),
        ("8:00", "2026-12-01T08:00:00+01:00"),
        (" 23:15:30 ", "2026-11-30T23:15:30+01:00"),
        ("22:30", "2026-12-01T22:30:00+01:00"),  # this very moment is not ahead
        ("2026-12-01T08:00+01:00", "2026-12-01T08:00:00+01:00"),
        ("2026-12-01T08:00Z", "2026-12-01T09:00:00+01:00"),
        ("2026-12-01 08:00", "2026-12-01T08:00:00+01:00"),
        ("+6h", "2026-12-01T04:30:00+01:00"),
        ("+1d2h", "2026-12-02T00:30:00+01:00"),
        ("+90m", "2026-12-01T00:00:00+01:00"),
        ("+5s", "2026-11-30T22:30:05+01:00"),
    ],
)
def test_a_deadline_is_written_as_people_say_it(text: str, meant: str) -> None:
    found = berlin(text, EVENING)

    assert found is not None
    assert found.isoformat() == meant
    assert deadline_problem(text) is None


def test_none_is_no_deadline() -> None:
    assert berlin("none", EVENING) is None
    assert deadline_problem("none") is None


@pytest.mark.parametrize(
    "text",
    ["", "8", "24:00", "08:60", "tomorrow", "2026-12-01", "2026-13-01T08:00", "+", "+6", "+h",
     "+0h", "+400d", "+99999999999999d", "+" + "9" * 5000 + "d", "6h", "-1h", "08:00+01:00"],
)  # fmt: skip
def test_what_is_no_moment_is_refused_with_what_to_write(text: str) -> None:
    assert deadline_problem(text)
    with pytest.raises(DeadlineError, match=r"."):
        berlin(text, EVENING)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00+23:59"])
def test_a_day_that_the_calendar_of_the_zone_does_not_have_is_refused(text: str) -> None:
    assert "is beyond the calendar; write a time of day" in str(deadline_problem(text))
    with pytest.raises(DeadlineError, match="is beyond the calendar"):
        parse_deadline(text, EVENING)


def test_a_moment_that_has_passed_is_refused_and_told_what_time_it_is() -> None:
    with pytest.raises(DeadlineError, match=r"has passed: it is Mon 2026-11-30 22:30 \+01:00"):
        berlin("2026-11-30T22:30+01:00", EVENING)
    assert deadline_problem("2026-11-30T22:30+01:00") is None  # it may stand in a spec
    with pytest.raises(DeadlineError, match="more than a year ahead"):
        berlin("2036-11-30T22:30+01:00", EVENING)


def test_a_time_of_day_keeps_its_hour_when_the_clocks_change_in_between() -> None:
    saturday = datetime(2026, 10, 24, 20, tzinfo=UTC)  # 22:00; summer time ends in this night

    found = berlin("08:00", saturday)

    assert found is not None
    assert found.isoformat() == "2026-10-25T08:00:00+01:00"


@given(
    day=st.integers(0, 7000),
    second=st.integers(0, 86_399),
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
)
def test_a_time_of_day_is_ahead_by_a_day_at_most(
    day: int, second: int, hour: int, minute: int
) -> None:
    now = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=day, seconds=second)

    found = berlin(f"{hour:02}:{minute:02}", now)

    assert found is not None
    # a day may have 25 hours, and an hour that does not exist is an hour later
    assert timedelta() < found - now <= timedelta(hours=26)


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_shown_names_the_zone_and_a_reason_is_known_by_its_words(at: datetime) -> None:
    assert shown(at).endswith("+00:00")
    assert is_by_deadline(reason_of(at))


@pytest.mark.parametrize("reason", ["", "drained", "by anna: deadline 08:00 reached", "deadline"])
def test_what_somebody_else_stopped_is_not_by_a_deadline(reason: str) -> None:
    assert not is_by_deadline(reason)


RUN = RunView(
    id=RunId(1),
    name="night",
    state=RunState.RUNNING,
    state_since=EVENING,
    reason="",
    spec_json="{}",
    output_dir="-",
    token_budget=None,
    fingerprint_json="{}",
    gen_id="g",
    created_at=EVENING,
)
AT = EVENING + HOUR


def test_nothing_is_due_without_a_deadline_or_before_it() -> None:
    run = replace(RUN, deadline_at=AT)
    partition = part(1, state_since=EVENING, deadline_at=AT)

    assert due(RUN, [part(1, state_since=EVENING)], AT + HOUR) == Due()
    assert due(run, [partition], AT - timedelta(microseconds=1)) == Due()
    assert due(run, [partition], AT) == Due(run=AT, partitions=((PartitionId(1), AT),))


def test_only_a_run_that_may_work_is_stopped() -> None:
    for state in RunState:
        found = due(replace(RUN, deadline_at=AT, state=state), [], AT)
        assert (found.run is not None) == (state in (RunState.RUNNING, RunState.PAUSED))


@pytest.mark.parametrize(
    ("run_state", "facts", "is_due"),
    [
        (RunState.RUNNING, {}, True),
        (RunState.PAUSED, {}, True),
        (RunState.STOPPING, {}, False),
        (RunState.RUNNING, {"state": PartitionState.DRAINING}, True),
        (RunState.RUNNING, {"state": PartitionState.PAUSED}, False),
        (RunState.RUNNING, {"counts": Counts(ok=9)}, False),
    ],
)
def test_a_partition_that_may_work_is_paused(
    run_state: RunState, facts: dict[str, object], is_due: bool
) -> None:
    partition = with_facts(1, "short", {"state_since": EVENING, "deadline_at": AT, **facts})

    found = due(replace(RUN, state=run_state), [partition], AT)

    assert bool(found.partitions) == is_due


def test_what_a_person_set_going_after_the_deadline_goes_on() -> None:
    run = replace(RUN, deadline_at=AT, state_since=AT + HOUR)
    partition = part(1, state_since=AT, deadline_at=AT)

    assert due(run, [partition], AT + 2 * HOUR) == Due()


def test_a_deadline_is_spent_once_it_passed_over_a_run_at_rest() -> None:
    stopped = replace(RUN, state=RunState.STOPPED)

    assert is_spent(stopped, AT, AT)
    assert not is_spent(stopped, AT, EVENING)
    assert not is_spent(stopped, None, AT)
    assert not is_spent(RUN, AT, AT)
