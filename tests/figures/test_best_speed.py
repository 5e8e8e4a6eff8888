"""Slow is told beside the own best of the last hour, and only of time that was like it."""

from app.core.thresholds import RunThresholds
from app.figures.best_speed import BestSpeed

LIMITS = RunThresholds(slow_ratio=0.5, slow_after_s=600)


class Tape:
    """A partition whose tokens come at a set speed, looked at each second."""

    def __init__(self, limits: RunThresholds = LIMITS) -> None:
        self.track, self.limits = BestSpeed(), limits
        self.at_s, self.tokens = 0.0, 0.0

    def play(
        self, seconds: int, tokens_per_s: float, control: object = "same", every_s: float = 1.0
    ) -> BestSpeed:
        for _ in range(round(seconds / every_s)):
            self.at_s += every_s
            self.tokens += tokens_per_s * every_s
            self.track.add(self.at_s, int(self.tokens), control, self.limits)
        return self.track


def test_below_half_of_the_best_is_noted_from_when_on() -> None:
    tape = Tape()
    track = tape.play(1_200, 500.0)
    assert track.below_since_s is None

    tape.play(120, 200.0)

    assert track.below_since_s is not None
    assert 1_230 <= track.below_since_s <= 1_260  # a window of 60 s that is slow by more than half
    assert track.best_tokens_per_s is not None
    assert abs(track.best_tokens_per_s - 500.0) < 5
    tape.play(60, 500.0)
    assert track.below_since_s is None


def test_srv_03_what_stays_slow_for_hours_is_not_taken_for_normal() -> None:
    tape = Tape()
    tape.play(1_000, 500.0)
    track = tape.play(3 * 3_600, 100.0)

    assert track.below_since_s is not None
    assert track.below_since_s < 1_100


def test_a_best_of_more_than_an_hour_ago_is_forgotten() -> None:
    tape = Tape()
    tape.play(600, 500.0)
    track = tape.play(2 * 3_600, 300.0)

    assert track.best_tokens_per_s is not None
    assert track.best_tokens_per_s < 305


def test_a_control_change_makes_what_was_before_say_nothing() -> None:
    tape = Tape()
    tape.play(1_000, 500.0)

    track = tape.play(1_000, 100.0, control="half as many")

    assert track.below_since_s is None
    assert track.best_tokens_per_s is not None
    assert track.best_tokens_per_s < 105


def test_after_a_break_the_windows_begin_anew_and_the_best_stays() -> None:
    tape = Tape()
    tape.play(1_000, 500.0)
    tape.track.forget()
    tape.at_s += 300.0  # the server was away: no token came

    track = tape.play(30, 500.0)
    assert track.now_tokens_per_s is None
    tape.play(60, 500.0)

    assert track.below_since_s is None
    assert track.best_tokens_per_s is not None


def test_srv_03_short_thresholds_have_short_windows() -> None:
    """400 rows at 16 a second for 12 s, then 14 times slower, slow after 30 s."""
    tape = Tape(RunThresholds(slow_ratio=0.3, slow_after_s=30))
    tape.play(12, 1_600.0)

    track = tape.play(40, 114.0)

    assert track.below_since_s is not None
    assert tape.at_s - track.below_since_s >= 30


def test_srv_03_looks_that_come_late_do_not_begin_it_anew() -> None:
    tape = Tape(RunThresholds(slow_ratio=0.3, slow_after_s=30))
    tape.play(15, 1_600.0)

    since = tape.play(20, 114.0).below_since_s
    assert since is not None
    tape.play(21, 114.0, every_s=2.1)

    assert tape.track.below_since_s == since
