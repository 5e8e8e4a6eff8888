"""The guard of a tick: a worker that lost a sample records nothing at all."""

from dataclasses import replace

import pytest

from app.core.states import SampleState
from app.core.types import Claim, Fail, Keep, PutBack, Settled
from app.errors import DisownedError
from app.ledger import workers
from app.ledger.db import Ledger
from tests.ledger.hand import NOW, Hand, numbers
from tests.ledger.scene import Scene

OK = Keep(state=SampleState.OK, finish_reason="stop")
OUTCOMES: dict[str, Keep | PutBack | Fail] = {
    "keep": OK,
    "put back": PutBack(charged=True, reason="x"),
    "start over": PutBack(charged=True, reason="x", start_over=True),
    "fail": Fail(reason="x"),
}
TAKEN_BY_HAND = {
    "kept": "UPDATE sample SET state = 'ok' WHERE id = :id",
    "another attempt": "UPDATE sample SET attempt = attempt + 1 WHERE id = :id",
    "another worker": "UPDATE sample SET worker_id = worker_id + 1 WHERE id = :id",
}


def take_away(scene: Scene, hand: Hand, claim: Claim, how: str) -> None:
    if how in TAKEN_BY_HAND:
        scene.sql(TAKEN_BY_HAND[how], id=claim.sample_id)
        return
    workers.bury(scene.ledger, hand.worker_id, "silent", NOW)
    if how == "buried and claimed anew":
        scene.hand(hand.partition_id).claim(2)


@pytest.mark.parametrize("how", [*TAKEN_BY_HAND, "buried", "buried and claimed anew"])
@pytest.mark.parametrize("verb", ["gain", *OUTCOMES])
def test_nothing_of_a_tick_is_recorded_if_one_sample_is_no_longer_the_workers(
    scene: Scene, how: str, verb: str
) -> None:
    hand = scene.hand(scene.one(n=4))
    hand.ledger = Ledger(scene.path)  # a process of its own has a connection of its own
    mine, lost = hand.claim(2)
    hand.gain(lost, numbers(3))
    hand.line(0)
    gains = [hand.gained(mine, numbers(5))]
    settled: list[Settled] = []
    if verb == "gain":
        gains.append(hand.gained(lost, [9]))
    else:
        settled.append(hand.settled(lost, OUTCOMES[verb], [9]))
    take_away(scene, hand, lost, how)
    before = scene.everything()

    with pytest.raises(DisownedError):
        hand.tick(tuple(gains), tuple(settled))

    assert scene.everything() == before
    hand.ledger.close()


def test_a_worker_that_left_records_nothing_not_even_a_heartbeat(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=4))
    workers.deregister(scene.ledger, hand.worker_id, "drained", NOW)
    before = scene.everything()

    with pytest.raises(DisownedError, match=str(hand.worker_id)):
        hand.tick()

    assert scene.everything() == before


def test_a_tick_that_fails_half_way_can_be_sent_again(scene: Scene) -> None:
    partition_id = scene.one(n=2)
    hand = scene.hand(partition_id)
    claim = hand.one()
    entry = hand.settled(claim, OK, numbers(5))
    foreign = replace(entry, attempt=claim.attempt + 1)
    with pytest.raises(DisownedError):
        hand.tick(settled=(entry, foreign))

    hand.tick(settled=(entry,))

    assert scene.view(partition_id).tokens.kept == 5
    scene.check()


def test_a_worker_does_not_leave_with_running_samples(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=4))
    claim = hand.one()

    with pytest.raises(DisownedError, match="1 running"):
        workers.deregister(scene.ledger, hand.worker_id, "stop", NOW)
    hand.put_back(claim)
    workers.deregister(scene.ledger, hand.worker_id, "stop", NOW)

    assert workers.get_worker(scene.ledger, hand.worker_id).state == "exited"
