"""When a server has become another one in what it does at the same load, and when it has not."""

from random import Random

import pytest

from app.core.pieces import Piece, Shift, shift
from app.core.types import PartitionId

ONE, TWO = PartitionId(1), PartitionId(2)


def pieces(
    *speeds: float, n: float = 8.0, running: float | None = None, s: float = 10.0
) -> list[Piece]:
    """Return pieces with so many tokens a second in each, `n` in flight and `running` of them."""
    ran = n if running is None else running
    return [
        Piece(
            begin_s=0.0,
            end_s=s,
            tokens={ONE: round(speed * s)},
            flying_s={ONE: n * s},
            running_s=ran * s,
        )
        for speed in speeds
    ]


def test_srv_03_a_minute_at_half_the_speed_is_a_collapse() -> None:
    assert shift(pieces(*[800] * 30, *[390] * 6)) is Shift.SLOWER
    assert shift(pieces(*[800] * 30, *[390] * 5)) is None
    assert shift(pieces(*[800] * 30, *[410] * 6)) is None
    assert shift(pieces(*[800] * 30, 390, 390, 800, *[390] * 5)) is None


def test_srv_03_the_first_ten_seconds_are_enough_to_see_a_collapse() -> None:
    assert shift(pieces(800, *[57] * 6)) is Shift.SLOWER
    assert shift(pieces(*[57] * 6)) is None


def test_six_pieces_are_not_a_minute_where_the_last_ones_are_shorter() -> None:
    assert shift([*pieces(*[800] * 30), *pieces(*[57] * 6, s=9.0)]) is None


def test_a_recovery_is_seen_as_soon_as_the_collapse_was() -> None:
    assert shift(pieces(57, *[800] * 6), was_slower=True) is Shift.FASTER
    assert shift(pieces(57, *[800] * 5), was_slower=True) is None
    assert shift(pieces(57, *[100] * 6), was_slower=True) is None
    assert shift(pieces(*[800] * 6, *[57] * 6), was_slower=True) is Shift.SLOWER


def test_others_leaving_the_server_are_seen_against_two_minutes() -> None:
    assert shift(pieces(*[300] * 12, *[800] * 6)) is Shift.FASTER
    assert shift(pieces(*[300] * 11, *[800] * 6)) is None


def test_a_ramp_up_is_no_shift_however_long_the_prompts_take_to_be_read() -> None:
    reading = [one for k in range(30) for one in pieces(100, n=150, running=2 + k)]

    assert shift([*reading, *pieces(*[1_300] * 6, n=150)]) is None


def test_the_last_answers_are_slower_because_they_are_fewer() -> None:
    fewer = [one for n in (150, 100, 60, 40, 20, 10, 5, 2) for one in pieces(9 * n, n=n)]

    assert shift([*pieces(*[1_350] * 30, n=150), *fewer]) is None
    assert shift([*pieces(*[1_350] * 30, n=150), *pieces(*[90] * 6, n=1)]) is None


def test_a_server_that_was_away_is_the_same_when_it_is_back() -> None:
    before, away = pieces(*[800] * 30), pieces(2, s=600.0)

    for k in range(12):
        assert shift([*before, *away, *pieces(*[800] * k)]) is None
    assert shift([*pieces(*[800] * 6), *away, *pieces(*[800] * 20)]) is None


def test_a_burst_of_prompts_that_is_over_within_the_minute_is_no_shift() -> None:
    assert shift(pieces(*[800] * 30, *[200] * 5, 700)) is None
    assert shift(pieces(*([800] * 4 + [150] * 2) * 10)) is None


def test_requests_thrown_out_of_the_batch_are_no_shift() -> None:
    """A third fewer run at times, and pieces scatter by a quarter: at no moment is it a shift."""
    random = Random(3)
    past = [
        one
        for _ in range(700)
        for one in pieces(random.uniform(600, 1_000), n=182, running=random.uniform(110, 182))
    ]

    assert not any(shift(past[:k]) for k in range(len(past)))


@pytest.mark.parametrize("k", range(7))
def test_answers_that_come_in_bursts_are_one_speed(k: int) -> None:
    """Eight answers every seven seconds: a piece holds one burst or two."""
    bursts = [40 * (2 - (i % 7 in (0, 2, 4))) for i in range(k, 60 + k)]

    assert not any(shift(pieces(*bursts[:i])) for i in range(len(bursts)))


def test_tokens_of_all_partitions_count() -> None:
    moved = pieces(*[800] * 30)
    for each in pieces(*[20] * 6):
        each.tokens[TWO] = 7_800
        moved.append(each)

    assert shift(moved) is None


def test_a_minute_like_many_before_is_no_shift() -> None:
    """A server that throws out and takes in again swings: half the speed is nothing new to it."""
    swing = [*[1_000] * 14, *[400] * 5]

    assert shift(pieces(*swing * 4, *[1_000] * 10, *[450] * 6)) is None
    assert shift(pieces(*swing * 4, *[1_000] * 10, *[250] * 6)) is Shift.SLOWER
    assert shift(pieces(*swing * 4, 400, *[1_000] * 6)) is None
