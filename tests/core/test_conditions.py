"""Each condition: when it begins, since when it holds, and when it ends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.core.conditions import Condition, ConditionKind
from app.core.conditions_of_run import GIB, RunFacts, Thresholds, run_conditions
from app.core.ledger_trouble import LedgerFacts

START = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
LIMITS = Thresholds(stall_after_s=600, disk_low_bytes=5 * GIB)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def found(
    facts: RunFacts, seconds: float, before: tuple[Condition, ...] = ()
) -> list[ConditionKind]:
    return [condition.kind for condition in run_conditions(facts, LIMITS, at(seconds), before)]


BUSY = RunFacts(n_in_flight=38, in_flight_since=at(0), last_token_at=at(100))


def test_srv_01_silence_of_the_server_is_stalled_from_the_threshold_on() -> None:
    assert found(BUSY, 699) == []
    assert found(BUSY, 700) == [ConditionKind.STALLED]


def test_stalled_says_since_when_and_how_much_is_in_flight() -> None:
    (stalled,) = run_conditions(BUSY, LIMITS, at(940))

    assert stalled.since == at(100)
    assert "14m" in stalled.sentence
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
    facts = RunFacts(server_waiting_since=at(0), last_good_answer_at=at(-60))

    (waiting,) = run_conditions(facts, LIMITS, at(250))

    assert (waiting.kind, waiting.since) == (ConditionKind.WAITING_FOR_SERVER, at(0))
    assert "has not answered for 4m 10s" in waiting.sentence
    assert "last good answer: 5m 10s ago" in waiting.sentence
    assert found(replace(facts, server_waiting_since=None), 250) == []


def test_srv_25_waiting_before_any_answer_says_so() -> None:
    (waiting,) = run_conditions(RunFacts(server_waiting_since=at(0)), LIMITS, at(5))

    assert "last good answer: none yet" in waiting.sentence


def test_a_server_that_is_back_in_a_moment_is_not_waited_for() -> None:
    facts = RunFacts(server_waiting_since=at(0))

    assert found(facts, 4.9) == []
    assert found(facts, 5) == [ConditionKind.WAITING_FOR_SERVER]
    assert run_conditions(facts, replace(LIMITS, waiting_after_s=30), at(29)) == ()
    # and is called silent as little
    away = replace(BUSY, server_waiting_since=at(5000))
    assert found(away, 5001) == []


def test_a_server_that_is_away_is_not_called_stalled() -> None:
    facts = replace(BUSY, server_waiting_since=at(110))

    assert found(facts, 5000) == [ConditionKind.WAITING_FOR_SERVER]


DISK = RunFacts(output_folder="prepared/B1", free_bytes=100 * GIB)


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
    first = run_conditions(facts, LIMITS, at(0))

    (second,) = run_conditions(facts, LIMITS, at(60), first)

    assert second.since == at(0)
    assert "2.0 GB free at prepared/B1" in second.sentence
    assert "needs about 3.0 GB" in second.sentence


def test_disk_low_ends_with_a_margin_and_outlasts_a_look_that_failed() -> None:
    before = run_conditions(replace(DISK, free_bytes=4 * GIB), LIMITS, at(0))

    assert found(replace(DISK, free_bytes=5 * GIB), 60, before) == [ConditionKind.DISK_LOW]
    assert found(replace(DISK, free_bytes=None), 60, before) == [ConditionKind.DISK_LOW]
    assert found(replace(DISK, free_bytes=6 * GIB), 60, before) == []


def test_the_gravest_stands_first() -> None:
    facts = replace(BUSY, server_waiting_since=at(110), free_bytes=0)

    assert found(facts, 5000) == [ConditionKind.WAITING_FOR_SERVER, ConditionKind.DISK_LOW]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (61, "1m 1s"), (7260, "2h 1m")]
)
def test_spans_are_said_in_words(seconds: float, words: str) -> None:
    limits = replace(LIMITS, waiting_after_s=0)
    (waiting,) = run_conditions(RunFacts(server_waiting_since=at(0)), limits, at(seconds))

    assert f"not answered for {words};" in waiting.sentence


def test_without_a_service_what_its_workers_saw_is_not_said() -> None:
    facts = replace(BUSY, server_waiting_since=at(0), not_served_since=at(650))

    (unserved,) = run_conditions(facts, LIMITS, at(900))

    assert unserved.kind is ConditionKind.NOT_SERVED
    assert unserved.since == at(650)
    assert "go on with: longwatch serve" in unserved.sentence


def test_all_paused_says_how_it_goes_on() -> None:
    facts = RunFacts(all_paused_since=at(5), resume_command="longwatch resume night")

    (paused,) = run_conditions(facts, LIMITS, at(9))

    assert paused.since == at(5)
    assert paused.sentence.endswith("go on with: longwatch resume night")


FULL = LedgerFacts(folder="home", free_bytes=4_096, full_since=at(10))


def test_led_03_a_full_disk_of_the_ledger_is_said_until_a_write_is_taken() -> None:
    (full,) = run_conditions(RunFacts(ledger=FULL), LIMITS, at(15))

    assert (full.kind, full.since) == (ConditionKind.LEDGER_FULL, at(10))
    assert "home, is full: 4.1 kB free" in full.sentence
    assert "goes on by itself" in full.sentence
    assert found(RunFacts(ledger=replace(FULL, full_since=None)), 20) == []


def test_led_03_workers_that_record_nothing_on_a_disk_without_room_say_it_too() -> None:
    """Our own small write may still find room where theirs does not."""
    facts = RunFacts(ledger=replace(FULL, full_since=None), unrecorded_s=8.0)

    (full,) = run_conditions(facts, LIMITS, at(20))

    assert full.since == at(12)
    (later,) = run_conditions(replace(facts, unrecorded_s=9.5), LIMITS, at(22), (full,))
    assert later.since == at(12)
    roomy = replace(facts, ledger=replace(facts.ledger, free_bytes=10**9))
    assert found(roomy, 20) == [ConditionKind.STORAGE_SLOW]


LATE = RunFacts(unrecorded_s=8.0, unrecorded_at=at(20), output_folder="prepared")


def test_storage_slow_begins_once_nothing_was_recorded_for_long() -> None:
    limits = replace(LIMITS, storage_slow_after_s=10)
    assert run_conditions(LATE, limits, at(20)) == ()

    (slow,) = run_conditions(replace(LATE, unrecorded_s=10.0), limits, at(22))

    assert (slow.kind, slow.since) == (ConditionKind.STORAGE_SLOW, at(12))
    assert "nothing has been recorded for 10 s" in slow.sentence


def test_storage_slow_ends_once_all_is_recorded_in_time_for_a_while() -> None:
    """Ticks of eight seconds each are late again and again: that is one condition, not many."""
    before = run_conditions(LATE, LIMITS, at(20))
    in_time = replace(LATE, unrecorded_s=0.0)

    (still,) = run_conditions(in_time, LIMITS, at(49), before)
    assert still.since == at(12)
    assert run_conditions(in_time, LIMITS, at(50), (still,)) == ()
    locked = replace(LATE, ledger=LedgerFacts(locked_since=at(0)))
    assert [one.kind for one in run_conditions(locked, LIMITS, at(20), before)] == [
        ConditionKind.LEDGER_LOCKED
    ]


def test_server_changed_gives_the_exact_difference_and_what_to_do() -> None:
    facts = RunFacts(
        server_changed_since=at(3),
        server_change="http://a:1 model_path /models/a -> /models/b",
    )

    (changed,) = run_conditions(facts, LIMITS, at(9))

    assert (changed.kind, changed.since) == (ConditionKind.SERVER_CHANGED, at(3))
    assert changed.sentence.startswith(
        "Server changed: http://a:1 model_path /models/a -> /models/b. Nothing is sent to it."
    )
    assert "--accept-changes" in changed.sentence
    assert (
        run_conditions(replace(facts, server_changed_since=None), LIMITS, at(10), (changed,)) == ()
    )


def test_led_01_a_lock_is_said_when_it_lasts_and_names_who_has_it() -> None:
    facts = RunFacts(ledger=LedgerFacts(locked_since=at(0), others=("sqlite3 (process 7)",)))

    assert found(facts, 2.9) == []
    (locked,) = run_conditions(facts, LIMITS, at(6))

    assert (locked.kind, locked.since) == (ConditionKind.LEDGER_LOCKED, at(0))
    assert "locked by sqlite3 (process 7) for 6 s" in locked.sentence
    assert found(replace(facts, ledger=LedgerFacts()), 7) == []
    late = replace(facts, unrecorded_s=3.5)
    (locked,) = run_conditions(late, LIMITS, at(1))
    assert locked.since == at(-2.5)


def test_a_ledger_that_takes_nothing_is_not_called_a_silent_server() -> None:
    assert found(replace(BUSY, ledger=FULL), 5000) == [ConditionKind.LEDGER_FULL]
    held = LedgerFacts(locked_since=at(4000))
    assert found(replace(BUSY, ledger=held), 5000) == [ConditionKind.LEDGER_LOCKED]


LOG = LedgerFacts(log_bytes=71_200_000, read_since=at(0))


def test_led_02_a_large_log_names_its_cause_and_ends_below_the_bound() -> None:
    (large,) = run_conditions(RunFacts(ledger=LOG), LIMITS, at(90))

    assert (large.kind, large.since) == (ConditionKind.LEDGER_LOG, at(0))
    assert "log is 71.2 MB because another program has kept it open" in large.sentence
    assert "for reading for 1m 30s" in large.sentence
    assert found(RunFacts(ledger=replace(LOG, log_bytes=63_999_999)), 90) == []
    assert found(RunFacts(ledger=replace(LOG, log_bytes=None)), 90) == []


def test_led_02_a_large_log_that_nobody_reads_is_said_without_a_cause() -> None:
    facts = RunFacts(ledger=replace(LOG, read_since=None))
    (first,) = run_conditions(facts, LIMITS, at(90))

    (second,) = run_conditions(facts, LIMITS, at(99), (first,))

    assert second.since == at(90)
    assert "could not be folded in yet" in second.sentence
