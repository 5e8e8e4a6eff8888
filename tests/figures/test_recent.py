"""How the last outcomes ended, walked back over counters of looks."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.core.conditions_of_outcomes import Share
from app.core.thresholds import RunThresholds
from app.core.types import Counts
from app.figures.recent import Charged, OutcomeTrack

LIMITS = RunThresholds(failing_window=10, empty_window=10, mismatch_window=10)
NOTHING = Charged()


def test_only_the_last_ones_count() -> None:
    track = OutcomeTrack()
    for n in range(101):
        track.add(n, Counts(pending=100 - n, ok=min(n, 60), failed=max(0, n - 60)), NOTHING, 100)

    assert track.seen(LIMITS, 0.0).failed == Share(n=10, n_bad=10)
    wide = track.seen(replace(LIMITS, failing_window=80), 0.0)
    assert wide.failed == Share(n=80, n_bad=40)


def test_of_what_ended_before_the_service_the_counters_of_all_time_speak() -> None:
    track = OutcomeTrack()
    track.add(0.0, Counts(ok=900, failed=100), NOTHING, 100)
    assert track.seen(LIMITS, 0.0).failed == Share(n=1_000, n_bad=100)
    track.add(1.0, Counts(ok=900, failed=109), NOTHING, 100)
    assert track.seen(LIMITS, 0.0).failed == Share(n=1_009, n_bad=109)
    track.add(2.0, Counts(ok=900, failed=110), NOTHING, 100)
    assert track.seen(LIMITS, 0.0).failed == Share(n=10, n_bad=10)


def test_fewer_than_the_window_are_all_there_are() -> None:
    track = OutcomeTrack()
    track.add(0.0, Counts(pending=9), NOTHING, 100)
    track.add(1.0, Counts(pending=5, empty=3, ok=1), NOTHING, 100)

    assert track.seen(LIMITS, 0.0).empty == Share(n=4, n_bad=3)


def test_a_retry_begins_anew() -> None:
    track = OutcomeTrack()
    track.add(0.0, Counts(ok=50), NOTHING, 100)
    track.add(1.0, Counts(ok=50, failed=20), NOTHING, 100)
    assert track.seen(LIMITS, 0.0).n_ended_since == 20
    track.add(2.0, Counts(ok=50, pending=20), NOTHING, 100)

    seen = track.seen(LIMITS, 0.0)

    assert seen.failed == Share(n=50, n_bad=0)
    assert seen.n_ended_since == 0


def test_since_it_was_set_going_only_what_came_later_counts() -> None:
    track = OutcomeTrack()
    for at_s in range(31):
        track.add(float(at_s), Counts(empty=at_s), NOTHING, 100)

    assert track.seen(LIMITS, -5.0).n_ended_since == 30
    assert track.seen(LIMITS, 20.5).n_ended_since == 10
    assert track.seen(LIMITS, 99.0).n_ended_since == 0


def test_srv_14_answers_with_another_prompt_are_counted_with_those_that_are_retried() -> None:
    track = OutcomeTrack()
    track.add(0.0, Counts(ok=500), NOTHING, 100)
    track.add(1.0, Counts(ok=505), Charged(n=3, n_mismatched=2), 100)
    assert track.seen(LIMITS, 0.0).mismatched == Share(n=8, n_bad=2)
    track.add(2.0, Counts(ok=505), Charged(n=10, n_mismatched=9), 100)

    seen = track.seen(LIMITS, 0.0)

    assert seen.mismatched == Share(n=10, n_bad=9)
    assert (seen.n_answers_since, seen.n_ended_since) == (18, 5)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=80
    ),
    st.integers(5, 40),
)
def test_no_window_is_smaller_than_asked_while_so_many_ended(
    steps: list[tuple[int, int, int]], window: int
) -> None:
    track, counts = OutcomeTrack(), Counts()
    biggest = max(sum(step) for step in steps)
    limits = replace(LIMITS, failing_window=window)
    for at_s, (n_ok, n_failed, n_cut) in enumerate(steps):
        counts = replace(
            counts,
            ok=counts.ok + n_ok,
            failed=counts.failed + n_failed,
            truncated=counts.truncated + n_cut,
        )
        track.add(float(at_s), counts, NOTHING, window)
        share = track.seen(limits, 0.0).failed
        ended = counts.kept + counts.failed
        assert 0 <= share.n_bad <= share.n
        assert min(window, ended) <= share.n <= max(window, min(ended, window + biggest))
