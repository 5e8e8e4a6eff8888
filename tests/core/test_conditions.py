"""Each condition: when it begins, since when it holds, and when it ends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.core.conditions import GIB, Condition, ConditionKind, Facts, Thresholds, conditions

START = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
LIMITS = Thresholds(stall_after_s=600, disk_low_bytes=5 * GIB)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def found(facts: Facts, seconds: float, before: tuple[Condition, ...] = ()) -> list[ConditionKind]:
    return [condition.kind for condition in conditions(facts, LIMITS, at(seconds), before)]


BUSY = Facts(n_in_flight=38, in_flight_since=at(0), last_token_at=at(100))


def test_srv_01_silence_of_the_server_is_stalled_from_the_threshold_on() -> None:
    assert found(BUSY, 699) == []
    assert found(BUSY, 700) == [ConditionKind.STALLED]


def test_stalled_says_since_when_and_how_much_is_in_flight() -> None:
    (stalled,) = conditions(BUSY, LIMITS, at(940))

    assert stalled.since == at(100)
    assert "14 min" in stalled.sentence
    assert "38 requests are in flight" in stalled.sentence


@pytest.mark.parametrize(
    "change",
    [
        {"last_token_at": at(650)},
        {"server_progress_at": at(650)},
        {"n_in_flight": 0},
        {"in_flight_since": at(650)},
        {"in_flight_since": None},
    ],
)
def test_stalled_ends_with_any_sign_of_life_or_nothing_in_flight(
    change: dict[str, object],
) -> None:
    assert found(BUSY, 720) == [ConditionKind.STALLED]
    assert found(replace(BUSY, **change), 720) == []  # type: ignore[arg-type] # names above


def test_a_server_that_never_sent_a_token_stalls_too() -> None:
    facts = replace(BUSY, last_token_at=None)

    assert found(facts, 599) == []
    assert found(facts, 600) == [ConditionKind.STALLED]


def test_a_clock_set_back_stalls_nothing() -> None:
    assert found(BUSY, -100_000) == []


def test_srv_02_waiting_for_server_says_the_time_since_the_last_good_answer() -> None:
    facts = Facts(server_waiting_since=at(0), last_good_answer_at=at(-60))

    (waiting,) = conditions(facts, LIMITS, at(250))

    assert (waiting.kind, waiting.since) == (ConditionKind.WAITING_FOR_SERVER, at(0))
    assert "has not answered for 4 min 10 s" in waiting.sentence
    assert "last good answer: 5 min 10 s ago" in waiting.sentence
    assert found(replace(facts, server_waiting_since=None), 250) == []


def test_srv_25_waiting_before_any_answer_says_so() -> None:
    (waiting,) = conditions(Facts(server_waiting_since=at(0)), LIMITS, at(5))

    assert "last good answer: none yet" in waiting.sentence


def test_a_server_that_is_away_is_not_called_stalled() -> None:
    facts = replace(BUSY, server_waiting_since=at(110))

    assert found(facts, 5000) == [ConditionKind.WAITING_FOR_SERVER]


DISK = Facts(output_folder="prepared/B1", free_bytes=100 * GIB)


@pytest.mark.parametrize(
    ("free", "needed", "is_low"),
    [
        (5 * GIB - 1, None, True),
        (5 * GIB, None, False),
        (100 * GIB, 91 * GIB, True),
        (100 * GIB, 89 * GIB, False),
        (None, 10**15, False),
    ],
)
def test_sto_01_disk_low_warns_before_the_disk_is_full(
    free: int | None, needed: int | None, is_low: bool
) -> None:
    facts = replace(DISK, free_bytes=free, needed_bytes=needed)

    assert found(facts, 0) == [ConditionKind.DISK_LOW] * is_low


def test_disk_low_keeps_its_beginning_and_names_the_folder() -> None:
    facts = replace(DISK, free_bytes=2 * 10**9, needed_bytes=3 * 10**9)
    first = conditions(facts, LIMITS, at(0))

    (second,) = conditions(facts, LIMITS, at(60), first)

    assert second.since == at(0)
    assert "2.0 GB free at prepared/B1" in second.sentence
    assert "needs about 3.0 GB" in second.sentence


def test_disk_low_ends_with_a_margin_and_outlasts_a_look_that_failed() -> None:
    before = conditions(replace(DISK, free_bytes=4 * GIB), LIMITS, at(0))

    assert found(replace(DISK, free_bytes=5 * GIB), 60, before) == [ConditionKind.DISK_LOW]
    assert found(replace(DISK, free_bytes=None), 60, before) == [ConditionKind.DISK_LOW]
    assert found(replace(DISK, free_bytes=6 * GIB), 60, before) == []


def test_the_gravest_stands_first() -> None:
    facts = replace(BUSY, server_waiting_since=at(110), free_bytes=0)

    assert found(facts, 5000) == [ConditionKind.WAITING_FOR_SERVER, ConditionKind.DISK_LOW]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")]
)
def test_spans_are_said_in_words(seconds: float, words: str) -> None:
    (waiting,) = conditions(Facts(server_waiting_since=at(0)), LIMITS, at(seconds))

    assert f"not answered for {words};" in waiting.sentence


def test_without_a_service_what_its_workers_saw_is_not_said() -> None:
    facts = replace(BUSY, server_waiting_since=at(0), not_served_since=at(650))

    (unserved,) = conditions(facts, LIMITS, at(900))

    assert unserved.kind is ConditionKind.NOT_SERVED
    assert unserved.since == at(650)
    assert "go on with: longwatch serve" in unserved.sentence


def test_all_paused_says_how_it_goes_on() -> None:
    facts = Facts(all_paused_since=at(5), resume_command="longwatch resume night")

    (paused,) = conditions(facts, LIMITS, at(9))

    assert paused.since == at(5)
    assert paused.sentence.endswith("go on with: longwatch resume night")
