"""Stored rows become fewer with age, in bounded steps, and stay few."""

from app.clock import to_ms
from app.core.types import RunId
from app.ledger import snapshots
from app.ledger.snapshots import Snapshot
from app.recorder.thinning import Thinning
from tests.recorder.conftest import Desk

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
N_STEPS = 60


def stored(run_id: RunId, at_ms: int) -> Snapshot:
    value = '{"session": 1, "tokens": {"received": 1}, "partitions": {"1": [1]}}'
    return Snapshot(run_id=run_id, at_ms=at_ms, figures_json=value)


def walk(desk: Desk, thinning: Thinning, now_ms: int) -> list[int]:
    """Thin until nothing is due; return how many rows went in each step."""
    gone: list[int] = []
    for _ in range(N_STEPS):
        surplus = thinning.next([desk.home.run_id], now_ms)
        if surplus is None:
            return gone
        snapshots.record(desk.home.ledger, [], (), surplus)
        thinning.done()
        gone.append(len(surplus.moments_ms))
    raise AssertionError("the walk does not end")


def ages_ms(desk: Desk, now_ms: int) -> list[int]:
    rows = snapshots.between(desk.home.ledger, desk.home.run_id, 0, now_ms + 1)
    return [now_ms - row.at_ms for row in rows]


def test_two_days_of_rows_become_one_a_minute_and_one_each_ten(desk: Desk) -> None:
    now_ms = to_ms(desk.hands.now())
    run_id = desk.home.run_id
    moments = range(now_ms - 25 * HOUR_MS, now_ms, 10_000)
    snapshots.record(desk.home.ledger, [stored(run_id, at) for at in moments])
    thinning = Thinning(desk.home.ledger)

    gone = walk(desk, thinning, now_ms)

    ages = ages_ms(desk, now_ms)
    assert max(gone) <= 500
    assert len([age for age in ages if age <= HOUR_MS]) == 360
    assert 1_370 <= len([age for age in ages if HOUR_MS < age < DAY_MS]) <= 1_400
    assert 5 <= len([age for age in ages if age >= DAY_MS]) <= 10

    later_ms = now_ms + 20 * 60_000
    assert sum(walk(desk, thinning, later_ms)) > 80
    assert sum(walk(desk, Thinning(desk.home.ledger), later_ms)) <= 3


def test_a_step_that_was_not_written_is_taken_again(desk: Desk) -> None:
    now_ms = to_ms(desk.hands.now())
    run_id = desk.home.run_id
    moments = range(now_ms - 2 * HOUR_MS, now_ms - HOUR_MS - 60_000, 10_000)
    snapshots.record(desk.home.ledger, [stored(run_id, at) for at in moments])
    thinning = Thinning(desk.home.ledger)

    first = thinning.next([run_id], now_ms)

    assert first is not None
    assert first.moments_ms
    assert thinning.next([run_id], now_ms) == first
