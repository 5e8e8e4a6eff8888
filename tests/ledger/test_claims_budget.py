"""No claim takes used + reserved above a budget, of the partition or of the run."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.states import SampleState
from app.ledger import claims
from app.ledger.claims import Wish
from app.ledger.limits import set_partition_budget
from app.ledger.orders import Order
from tests.ledger.hand import GEN, NOW, Hand, numbers
from tests.ledger.scene import CAP, Part, Scene


def test_the_partition_budget_admits_as_many_as_it_has_room_for(scene: Scene) -> None:
    partition_id = scene.one(n=20, budget=5 * CAP + 99)
    hand = scene.hand(partition_id)

    claimed = hand.claim(20)

    assert len(claimed) == 5
    assert hand.claim(20) == []
    assert scene.view(partition_id).reserved_tokens == 5 * CAP


def test_held_tokens_count_as_used(scene: Scene) -> None:
    partition_id = scene.one(n=20, budget=2 * CAP)
    hand = scene.hand(partition_id)
    for claim in hand.claim(2):
        hand.put_back(claim, unsaved=numbers(60))

    # Two continuations of 40 more each fit exactly, a fresh one does not.
    again = hand.claim(20)

    assert [len(claim.held) for claim in again] == [60, 60]


def test_short_answers_make_room_and_the_budget_is_reached_only_when_nothing_runs(
    scene: Scene,
) -> None:
    partition_id = scene.one(n=20, budget=2 * CAP)
    hand = scene.hand(partition_id)
    first, second = hand.claim(20)
    assert hand.claim(1) == []
    assert not scene.view(partition_id).budget_reached

    hand.keep(first, unsaved=numbers(60))
    assert hand.claim(1) == []  # 60 used, 100 reserved: 40 left
    assert not scene.view(partition_id).budget_reached
    hand.keep(second, unsaved=numbers(60))
    assert hand.claim(1) == []

    assert scene.view(partition_id).budget_reached
    assert scene.view(partition_id).is_over


def test_the_run_budget_counts_what_other_partitions_have_used_and_reserved(scene: Scene) -> None:
    first, second = scene.run(Part(name="a"), Part(name="b"), budget=5 * CAP)
    one, other = scene.hand(first), scene.hand(second)
    one.keep(one.one(), unsaved=numbers(CAP))
    one.claim(2)

    claimed = other.claim(10)

    assert len(claimed) == 2
    assert one.claim(1) == []


def test_a_partition_waits_while_another_may_still_leave_room_in_the_run_budget(
    scene: Scene,
) -> None:
    first, second = scene.run(Part(name="a", n=1), Part(name="b"), budget=CAP + 20)
    one, other = scene.hand(first), scene.hand(second)
    claim = one.one()

    assert other.claim(1) == []
    assert not scene.view(second).budget_reached
    one.keep(claim, unsaved=numbers(10))

    assert len(other.claim(1)) == 1
    scene.check()


def test_the_run_budget_is_reached_when_nobody_has_reserved_any_more(scene: Scene) -> None:
    first, second = scene.run(Part(name="a", n=1), Part(name="b"), budget=CAP + 20)
    one, other = scene.hand(first), scene.hand(second)
    one.keep(one.one(), unsaved=numbers(CAP))

    assert other.claim(1) == []

    assert scene.view(second).budget_reached


def test_the_tighter_of_the_two_budgets_decides(scene: Scene) -> None:
    tight_run = scene.run(Part(budget=9 * CAP, n=20), name="one", budget=2 * CAP)[0]
    tight_partition = scene.run(Part(budget=2 * CAP, n=20), name="two", budget=9 * CAP)[0]

    assert len(scene.hand(tight_run).claim(20)) == 2
    assert len(scene.hand(tight_partition).claim(20)) == 2


def test_an_answer_that_starts_over_reserves_its_whole_length_at_once(scene: Scene) -> None:
    """Another partition may claim before the next tick says what this worker reserves."""
    first, second = scene.run(Part(name="a", n=1), Part(name="b", n=9), budget=2 * CAP)
    hand = scene.hand(first)
    hand.put_back(hand.one(), unsaved=numbers(90))
    hand.gen_id = "gen-two"
    assert not hand.one().held

    claimed = scene.hand(second).claim(9)

    assert scene.view(first).reserved_tokens == CAP
    assert len(claimed) == 1


def test_what_a_worker_wants_free_beside_its_reservation_stays_free(scene: Scene) -> None:
    first, second = scene.run(Part(name="a", n=20, budget=10 * CAP), Part(name="b", n=9))
    wish = Wish(
        worker_id=scene.hand(first).worker_id,
        n=20,
        reserved_tokens=0,
        reservation=lambda held, cap: cap - held,
        margin=lambda reserved: reserved,
        gen_id=GEN,
    )

    claimed = claims.claim(scene.ledger, wish, NOW, Random(1))

    # 400 reserved and as much free: a fifth would take 500 with 400 free; a sixth does not fit
    assert len(claimed) == 5
    assert not scene.view(first).budget_reached
    # of the run's budget what the other has reserved is as uncertain: its margin counts too
    scene.sql("UPDATE run SET token_budget = :n", n=12 * CAP)
    other = replace(wish, worker_id=scene.hand(second).worker_id)
    assert len(claims.claim(scene.ledger, other, NOW, Random(1))) == 1


@pytest.mark.parametrize("how_many", [1, 3])
def test_a_budget_lowered_in_mid_run_ends_with_what_runs_and_raised_again_goes_on(
    scene: Scene, how_many: int
) -> None:
    partition_id = scene.one(n=20, budget=9 * CAP)
    hand = scene.hand(partition_id)
    running = hand.claim(how_many)
    order = Order(run_id=scene.run_id(partition_id), who="anna", now=NOW)

    set_partition_budget(scene.ledger, order, "p", 1)
    assert hand.claim(5) == []
    assert not scene.view(partition_id).budget_reached
    for each in running:
        hand.keep(each, unsaved=numbers(CAP))  # none is cut short
    assert hand.claim(5) == []
    assert scene.view(partition_id).is_over

    set_partition_budget(scene.ledger, order, "p", (how_many + 2) * CAP)
    assert not scene.view(partition_id).is_over
    assert len(hand.claim(5)) == 2
    scene.check()


def test_raising_the_budget_makes_room(scene: Scene) -> None:
    partition_id = scene.one(n=20, budget=CAP)
    hand = scene.hand(partition_id)
    hand.keep(hand.one(), unsaved=numbers(CAP))
    assert hand.claim(5) == []
    scene.sql("UPDATE partition SET token_budget = :n", n=3 * CAP)

    assert len(hand.claim(5)) == 2
    assert not scene.view(partition_id).budget_reached


@pytest.mark.parametrize("dead", [True, False])
def test_a_worker_that_left_reserves_nothing(scene: Scene, dead: bool) -> None:
    first, second = scene.run(Part(name="a"), Part(name="b"), budget=3 * CAP)
    hand = scene.hand(first)
    claimed = hand.claim(3)
    if dead:
        hand.die()
    else:
        for claim in claimed:
            hand.put_back(claim)
        hand.tick()

    assert len(scene.hand(second).claim(9)) == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # reset by each example
@given(
    needs=st.lists(st.integers(0, 60), min_size=1, max_size=12),
    budget=st.integers(0, 300),
    run_budget=st.none() | st.integers(0, 300),
    already=st.integers(0, 80),
    used=st.integers(0, 120),
    n=st.integers(1, 12),
)
def test_random_reservations_never_go_above_a_budget(
    *,
    budget_scene: Scene,
    needs: list[int],
    budget: int,
    run_budget: int | None,
    already: int,
    used: int,
    n: int,
) -> None:
    (partition_id,) = budget_scene.partition_ids
    budget_scene.sql("UPDATE sample SET state = 'pending', worker_id = NULL")
    budget_scene.sql(
        "UPDATE partition SET n_pending = 12, n_running = 0, token_budget = :budget,"
        " kept_tokens = :used",
        budget=budget,
        used=used,
    )
    budget_scene.sql("UPDATE run SET token_budget = :run", run=run_budget)
    asked = iter(needs * 12)
    given_out: list[int] = []

    def reservation(held: int, cap: int) -> int:
        given_out.append(next(asked))
        return given_out[-1]

    wish = Wish(
        worker_id=budget_scene.hand(partition_id).worker_id,
        n=n,
        reserved_tokens=already,
        reservation=reservation,
        gen_id=GEN,
    )

    claimed = claims.claim(budget_scene.ledger, wish, NOW, Random(1))

    reserved = sum(given_out[: len(claimed)])
    room = min(budget, budget if run_budget is None else run_budget) - used - already
    assert not claimed or reserved <= room
    assert budget_scene.view(partition_id).reserved_tokens == already + reserved
    if len(claimed) < min(n, 12):  # stopped by the budget: the next one would not have fitted
        assert reserved + max(1, given_out[len(claimed)]) > room


@pytest.fixture
def budget_scene(scene: Scene) -> Scene:
    scene.one(n=12)
    return scene


@pytest.mark.parametrize("seed", range(6))
def test_three_partitions_under_a_run_budget_never_pass_it_at_a_claim(
    scene: Scene, seed: int
) -> None:
    random = Random(seed)
    budget = random.randint(8, 20) * CAP
    ids = scene.run(
        *(Part(name=name, n=40, budget=8 * CAP if name == "b" else None) for name in "abc"),
        budget=budget,
    )
    hands = [scene.hand(each) for each in ids]
    for _ in range(120):
        hand = random.choice(hands)
        _step(hand, random)
        _within(scene, hands, budget)
    scene.check()
    assert sum(scene.view(each).counts.kept for each in ids) > 5


def _step(hand: Hand, random: Random) -> None:
    running = list(hand.claimed.values())
    if not running or random.random() < 0.4:
        hand.claim(random.randint(1, 4))
        return
    claim = random.choice(running)
    room = claim.max_new_tokens - len(hand.made[claim.sample_id])
    some = numbers(random.randint(0, room))
    end = random.random()
    if end < 0.3 and some:
        hand.gain(claim, some)
    elif end < 0.7:
        hand.keep(claim, SampleState.OK, some)
    else:
        hand.put_back(claim, some, start_over=random.random() < 0.5)


def _within(scene: Scene, hands: list[Hand], budget: int) -> None:
    """Nothing is longer than its reservation here, so the bound holds after every step."""
    views = [scene.view(hand.partition_id) for hand in hands]
    used = sum(view.tokens.used for view in views)
    assert used + sum(hand.reserved for hand in hands) <= budget
    b_view, b_hand = views[1], hands[1]
    assert b_view.token_budget is not None
    assert b_view.tokens.used + b_hand.reserved <= b_view.token_budget
