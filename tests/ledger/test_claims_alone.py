"""A sample that the server died under twice runs alone, and holds nobody up for nothing."""

import pytest

from app.core.types import Claim, PartitionId
from app.ledger import workers
from tests.ledger.hand import Hand, numbers
from tests.ledger.scene import Part, Scene


def suspect(scene: Scene, partition_id: PartitionId, deaths: int = 2) -> None:
    """Make the partition's first sample one that the server died under so often."""
    hand = scene.hand(partition_id)
    for _ in range(deaths):
        hand.put_back(hand.one(), server_died=True)
    workers.deregister(scene.ledger, hand.worker_id, "test", hand.now)


def two(scene: Scene) -> tuple[Hand, Hand]:
    """Return workers of two partitions of one run; the first holds the suspect."""
    first, second = scene.run(Part(name="a", n=5), Part(name="b", n=5))
    suspect(scene, first)
    return scene.hand(first), scene.hand(second)


def alone(claims: list[Claim]) -> list[bool]:
    return [claim.alone for claim in claims]


def test_one_death_of_the_server_is_no_suspicion(scene: Scene) -> None:
    partition_id = scene.one(n=5)
    suspect(scene, partition_id, deaths=1)

    assert alone(scene.hand(partition_id).claim(5)) == [False] * 5


def test_a_suspect_is_claimed_alone_whatever_is_asked_for(scene: Scene) -> None:
    hand, other = two(scene)

    claimed = hand.claim(5)

    assert [(claim.position, claim.alone, claim.server_deaths) for claim in claimed] == [
        (0, True, 2)
    ]
    assert hand.claim(5) == []
    assert other.claim(5) == []


def test_a_suspect_waits_until_nothing_of_its_run_is_in_flight(scene: Scene) -> None:
    first, second = scene.run(Part(name="a", n=5), Part(name="b", n=5))
    other = scene.hand(second)
    running = other.one()
    suspect(scene, first)
    hand = scene.hand(first)

    assert hand.claim(5) == []
    assert other.claim(5) == []
    other.keep(running, unsaved=[1])

    assert alone(hand.claim(5)) == [True]


def test_the_first_token_of_a_suspect_ends_its_being_alone(scene: Scene) -> None:
    hand, other = two(scene)
    claim = hand.one()

    hand.gain(claim, [7])

    assert alone(other.claim(2)) == [False, False]
    assert alone(hand.claim(2)) == [False, False]
    hand.keep(claim)
    scene.check()


@pytest.mark.parametrize("outcome", ["keep", "fail", "bury"])
def test_the_end_of_a_suspect_lets_the_others_go_on(scene: Scene, outcome: str) -> None:
    hand, other = two(scene)
    claim = hand.one()

    if outcome == "keep":
        hand.keep(claim, unsaved=[1])
    elif outcome == "fail":
        hand.fail(claim)
    else:
        hand.die()  # the sample is a suspect still, but nobody is there to claim it

    assert len(other.claim(5)) == 5
    scene.check()


def test_suspects_are_taken_one_after_the_other(scene: Scene) -> None:
    first, second = scene.run(Part(name="a", n=2), Part(name="b", n=2))
    suspect(scene, first)
    scene.sql("UPDATE sample SET server_deaths = 2 WHERE partition_id = :id", id=second)
    hand, other = scene.hand(first), scene.hand(second)

    claim = hand.one()
    hand.gain(claim, [1])
    while_it_runs = other.claim(5)
    hand.keep(claim)

    assert while_it_runs == []
    assert alone(other.claim(5)) == [True]


def test_another_run_is_not_held_up(scene: Scene) -> None:
    hand, _ = two(scene)
    hand.one()
    stranger = scene.hand(scene.run(Part(n=3), name="another")[0])

    assert len(stranger.claim(5)) == 3


@pytest.mark.parametrize("state", ["paused", "draining"])
def test_a_suspect_in_a_partition_that_claims_nothing_holds_nobody_up(
    scene: Scene, state: str
) -> None:
    hand, other = two(scene)
    scene.sql(
        "UPDATE partition SET state = :state WHERE id = :id", state=state, id=hand.partition_id
    )

    assert len(other.claim(5)) == 5


def test_a_suspect_whose_partition_has_no_worker_holds_nobody_up(scene: Scene) -> None:
    """Its goal is reached, or it is not its turn: nobody would ever claim it."""
    hand, other = two(scene)
    workers.set_desired(scene.ledger, hand.worker_id, "stop")

    assert len(other.claim(5)) == 5
    workers.set_desired(scene.ledger, hand.worker_id, "work")
    assert other.claim(5) == []


def test_a_suspect_is_continued_with_what_it_holds(scene: Scene) -> None:
    partition_id = scene.one(n=2)
    hand = scene.hand(partition_id)
    for k in range(2):
        hand.put_back(hand.one(), unsaved=numbers(4, start=1 + 4 * k), server_died=True)

    claim = hand.one()

    assert (claim.alone, list(claim.held)) == (True, numbers(8))
    scene.check()
