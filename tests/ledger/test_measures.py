"""Measures are added with the settle of an answer: once, or not at all."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.clock import to_ms
from app.core.spread import Measure, Spread
from app.core.states import SampleState
from app.core.types import Fail, Keep, PartitionId, PutBack, Settled
from app.errors import DisownedError
from app.ledger import measures, repairs
from tests.ledger.hand import NOW, Hand, adopted_line, numbers
from tests.ledger.plans import explained, recorded, scans
from tests.ledger.scene import Part, Scene

OK = Keep(state=SampleState.OK, finish_reason='{"type":"stop","matched":2}')
CUT = Keep(state=SampleState.TRUNCATED, finish_reason='{"type":"length","length":9}')
HOUR_MS = to_ms(NOW.replace(minute=0, second=0))


def timed(entry: Settled, first_token_ms: int | None = 70, latency_ms: int | None = 900) -> Settled:
    return replace(entry, prompt_tokens=33, first_token_ms=first_token_ms, latency_ms=latency_ms)


def counted(scene: Scene, partition_id: PartitionId) -> dict[str, tuple[int, float]]:
    """Return count and sum of each measure that there is."""
    found = measures.spreads(scene.ledger, partition_id)
    return {
        kind.value: (spread.n, (spread.mean or 0) * spread.n)
        for kind, spread in found.items()
        if spread.n
    }


def answer(hand: Hand, n_tokens: int, outcome: Keep = OK) -> None:
    claim = hand.one()
    entry = timed(hand.settled(claim, outcome, numbers(n_tokens)))
    hand.forget(claim)
    hand.tick(settled=(entry,))


def test_an_answer_that_is_kept_is_measured(scene: Scene) -> None:
    partition_id = scene.one(n=4)
    hand = scene.hand(partition_id)
    first, second = hand.claim(2)
    hand.gain(first, numbers(4))

    hand.tick(
        settled=(
            timed(hand.settled(first, OK, numbers(6))),
            timed(hand.settled(second, CUT, numbers(9)), first_token_ms=None, latency_ms=None),
        )
    )

    assert counted(scene, partition_id) == {
        "output": (2, 19),
        "output_cut": (1, 9),
        "prompt": (2, 66),
        "first_token": (1, 70),
        "latency": (1, 900),
    }


@pytest.mark.parametrize(
    "outcome", [PutBack(charged=False, reason="x"), Fail(reason="x")], ids=["put back", "failed"]
)
def test_an_attempt_that_kept_nothing_is_not_measured(
    scene: Scene, outcome: PutBack | Fail
) -> None:
    partition_id = scene.one()
    hand = scene.hand(partition_id)
    entry = timed(hand.settled(hand.one(), outcome, numbers(6)))

    hand.tick(settled=(entry,))

    assert counted(scene, partition_id) == {}


def test_a_tick_that_is_refused_and_sent_again_measures_once(scene: Scene) -> None:
    """The attempt moved on under one of the samples: nothing of the tick stands."""
    partition_id = scene.one()
    hand = scene.hand(partition_id)
    entry = timed(hand.settled(hand.one(), OK, numbers(5)))
    foreign = replace(entry, attempt=entry.attempt + 1)
    with pytest.raises(DisownedError):
        hand.tick(settled=(entry, foreign))
    assert scene.rows("SELECT * FROM measure") == []

    hand.tick(settled=(entry,))
    with pytest.raises(DisownedError):
        hand.tick(settled=(entry,))

    assert counted(scene, partition_id)["output"] == (1, 5)


def test_an_adopted_line_is_measured_by_its_lengths_in_the_hour_when_it_ended(
    scene: Scene,
) -> None:
    partition_id = scene.one()
    hand = scene.hand(partition_id)
    line = adopted_line(hand.one(), hand.line(9), SampleState.TRUNCATED)
    ended = replace(line, finish_reason="length", ended_at_ms=to_ms(NOW) - 7_200_000)

    repairs.adopt(scene.ledger, partition_id, [ended], (line.shard_id, 10, 1))

    assert counted(scene, partition_id) == {
        "output": (1, 9),
        "output_cut": (1, 9),
        "prompt": (1, 3),
    }
    ((hour_at_ms, _),) = measures.by_hour(scene.ledger, partition_id, Measure.OUTPUT)
    assert hour_at_ms == HOUR_MS - 7_200_000


def test_an_adopted_line_that_does_not_say_when_it_ended_counts_all_the_same(scene: Scene) -> None:
    partition_id = scene.one()
    hand = scene.hand(partition_id)
    line = replace(adopted_line(hand.one(), hand.line(9), SampleState.OK), ended_at_ms=None)

    repairs.adopt(scene.ledger, partition_id, [line], (line.shard_id, 10, 1))

    assert scene.view(partition_id).counts.ok == 1
    assert counted(scene, partition_id) == {}


def test_measures_are_told_by_hour_and_from_an_hour_on(scene: Scene) -> None:
    partition_id = scene.one(n=6)
    hand = scene.hand(partition_id)
    for hours, n_tokens in ((0, 5), (0, 6), (1, 7), (3, 40)):
        hand.now = NOW + timedelta(hours=hours)
        answer(hand, n_tokens)
    later_ms = to_ms(NOW + timedelta(hours=1))  # in the midst of its hour

    by_hour = measures.by_hour(scene.ledger, partition_id, Measure.OUTPUT, None)
    since = measures.by_hour(scene.ledger, partition_id, Measure.OUTPUT, later_ms)
    spread = measures.spread(scene.ledger, partition_id, Measure.OUTPUT, later_ms)

    assert by_hour == [
        (HOUR_MS, Spread.of([5, 6])),
        (HOUR_MS + 3_600_000, Spread.of([7])),
        (HOUR_MS + 3 * 3_600_000, Spread.of([40])),
    ]
    assert since == by_hour[1:]
    assert spread == Spread.of([7, 40])


def test_a_run_is_the_sum_of_its_partitions_and_of_nothing_else(scene: Scene) -> None:
    one, other = scene.run(Part(name="a"), Part(name="b"))
    stranger = scene.run(Part(name="a"), name="another")[0]
    for partition_id, n_tokens in ((one, 5), (other, 60), (stranger, 9)):
        answer(scene.hand(partition_id), n_tokens)

    of_run = measures.of_run(scene.ledger, scene.run_id(one), Measure.OUTPUT)

    assert of_run == Spread.of([5, 60])
    assert measures.spread(scene.ledger, one, Measure.OUTPUT) == Spread.of([5])


def test_every_question_goes_down_the_primary_key(scene: Scene) -> None:
    partition_id = scene.one()
    run_id = scene.run_id(partition_id)
    answer(scene.hand(partition_id), 5)

    with recorded(scene.ledger) as asked:
        measures.spreads(scene.ledger, partition_id)
        measures.spread(scene.ledger, partition_id, Measure.LATENCY, 0)
        measures.by_hour(scene.ledger, partition_id, Measure.OUTPUT)
        measures.of_run(scene.ledger, run_id, Measure.OUTPUT)

    assert scans(scene.ledger, asked, "measure") == {}
    steps = [step for plan in explained(scene.ledger, asked).values() for step in plan]
    searches = [step for step in steps if "SEARCH m" in step]
    assert len(searches) == 4
    for step in searches:
        assert "PRIMARY KEY (partition_id=? AND kind=? AND hour_at_ms>?)" in step
