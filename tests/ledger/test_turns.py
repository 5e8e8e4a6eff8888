"""Turns that wait for an earlier one: which are due, what is rejected, and what waits again."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from app.core.states import KEPT, RETRYABLE, SampleState
from app.core.turns import turn_key, why_not_asked
from app.core.types import Claim, PartitionId, SampleId
from app.errors import LedgerError
from app.ledger import browsing, extending, failures, intake_rows, repairs, runs, searching, turns
from app.ledger import samples as sample_orders
from app.ledger.activity import Deed
from app.ledger.extending import Going
from app.ledger.intake_rows import Refused, Tokenized
from app.ledger.orders import Order
from app.ledger.settings_of_runs import forget_tokens
from app.ledger.turns import Due, Earlier, Rest
from tests.ledger.hand import NOW, adopted_line, numbers
from tests.ledger.plans import explained, recorded, scans
from tests.ledger.scene import Part, Scene

S = SampleState
DEED = Deed(who="test", event="retry")


def talks(scene: Scene, *n_turns: int, cap: int = 100) -> PartitionId:
    """Make a partition of conversations with so many turns, the first of each claimable."""
    partition_id = scene.run(Part(n=0, cap=cap))[0]
    rows: list[intake_rows.NewSample] = []
    for record, n in enumerate(n_turns):
        for turn in range(1, n + 1):
            sha = f"sha{record}" if turn == 1 else ""
            plain = (len(rows), record, 0, turn_key(f"c{record}", turn), "pending", sha)
            rows.append((*plain, None, None, None, turn, turn < n))
    intake_rows.insert_many(scene.ledger, partition_id, rows)
    intake_rows.scanned(scene.ledger, partition_id)
    firsts = intake_rows.untokenized(scene.ledger, partition_id, -1, len(rows))
    assert len(firsts) == len(n_turns)
    intake_rows.record_tokens(
        scene.ledger,
        partition_id,
        [Tokenized(sample_id=one.sample_id, prompt_tokens=3, token_offset=0) for one in firsts],
        [],
        3,
    )
    intake_rows.all_tokenized(scene.ledger, partition_id)
    return partition_id


def states(scene: Scene, partition_id: PartitionId) -> list[str]:
    rows = scene.rows(
        "SELECT state FROM sample WHERE partition_id = :p ORDER BY position", p=partition_id
    )
    return [str(row[0]) for row in rows]


def due(scene: Scene, partition_id: PartitionId) -> list[Due]:
    return turns.due(scene.ledger, partition_id, 100)


def ask(scene: Scene, partition_id: PartitionId) -> int:
    """Do what the tokenizing side does with all that is due; return how many that were."""
    found = due(scene, partition_id)
    tokenized = []
    rests = []
    for one in found:
        why = why_not_asked(one.turn, one.state, one.reason, one.flags)
        if why is not None:
            rests.append(Rest(parent_id=one.parent_id, state=one.state, reason=why))
            continue
        before = turns.earlier(scene.ledger, partition_id, one)
        assert [each.turn for each in before] == list(range(1, one.turn + 1))
        tokenized.append(
            Tokenized(
                sample_id=one.next.sample_id,
                prompt_tokens=5,
                token_offset=3,
                prompt_sha256="behind " + " ".join(_place(each) for each in before),
                parent_id=one.next.parent_id,
            )
        )
    turns.reject_rest(scene.ledger, partition_id, rests)
    intake_rows.record_tokens(scene.ledger, partition_id, tokenized, [], 8)
    return len(found)


def _place(one: Earlier) -> str:
    return f"{one.place.shard_id}:{one.place.offset}"


def test_a_turn_is_due_once_the_one_before_is_answered(scene: Scene) -> None:
    partition_id = talks(scene, 3, 1)
    hand = scene.hand(partition_id)
    assert turns.waited_for(scene.ledger) == {partition_id}
    assert due(scene, partition_id) == []
    first, alone = hand.claim(5)

    hand.keep(alone, S.OK, [1])
    assert due(scene, partition_id) == []
    hand.keep(first, S.OK, [1, 2])

    (found,) = due(scene, partition_id)
    assert (found.turn, found.next.record_index, found.next.parent_id) == (1, 0, first.sample_id)
    assert ask(scene, partition_id) == 1
    assert due(scene, partition_id) == []
    (second,) = hand.claim(5)
    assert (second.turn, second.key, second.prompt_sha256) == (2, "c0#turn2", "behind 1:10")
    scene.check()


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (S.TRUNCATED, "turn 1 was cut at its limit"),
        (S.EMPTY, "turn 1 came back empty"),
        (S.SUSPECT, "turn 1 repeats itself to its end"),
        (S.FAILED, "turn 1 failed: broken"),
    ],
)
def test_behind_a_turn_without_a_whole_answer_the_rest_is_rejected_and_a_retry_lets_it_wait(
    scene: Scene, state: SampleState, reason: str
) -> None:
    partition_id = talks(scene, 3, 2)
    hand = scene.hand(partition_id)
    first = hand.claim(1)[0]
    if state is S.FAILED:
        hand.fail(first, "broken")
    else:
        hand.keep(first, state, numbers(4))

    ask(scene, partition_id)

    assert states(scene, partition_id) == [state, "rejected", "rejected", "pending", "pending"]
    rows = scene.rows("SELECT DISTINCT reason FROM sample WHERE state = 'rejected'")
    assert rows == [(reason,)]
    scene.check()
    if state is S.TRUNCATED:
        extend(scene, partition_id)
    else:
        chosen = [(first.sample_id, 1)]
        failures.retry_members(scene.ledger, partition_id, state, chosen, DEED, NOW)
    assert states(scene, partition_id) == ["pending"] * 5
    assert due(scene, partition_id) == []
    scene.check()
    again = hand.claim(1)[0]
    assert again.sample_id == first.sample_id
    hand.keep(again, S.OK, [7])
    assert ask(scene, partition_id) == 1
    scene.check()


def extend(scene: Scene, partition_id: PartitionId) -> None:
    cuts = extending.truncated(scene.ledger, partition_id, -1, 100, None)
    order = Order(run_id=scene.run_id(partition_id), who="test", now=NOW)
    batch = [Going(cut=cut, pieces=[]) for cut in cuts]
    assert extending.go_on(scene.ledger, order, partition_id, batch) == []


def test_a_turn_that_is_rejected_itself_takes_the_rest_along(scene: Scene) -> None:
    partition_id = talks(scene, 3)
    hand = scene.hand(partition_id)
    hand.keep(hand.one(), S.OK, [1])
    (found,) = due(scene, partition_id)
    refused = Refused(
        sample_id=found.next.sample_id, reason="too long", parent_id=found.next.parent_id
    )

    intake_rows.record_tokens(scene.ledger, partition_id, [], [refused], 3)
    ask(scene, partition_id)

    assert states(scene, partition_id) == ["ok", "rejected", "rejected"]
    rows = scene.rows("SELECT reason FROM sample WHERE turn = 3")
    assert rows == [("turn 2 was rejected: too long",)]
    assert turns.waited_for(scene.ledger) == frozenset()
    scene.check()


def test_a_turn_that_was_opened_meanwhile_is_not_rejected_for(scene: Scene) -> None:
    partition_id = talks(scene, 2)
    hand = scene.hand(partition_id)
    hand.fail(hand.one(), "broken")
    (seen,) = due(scene, partition_id)
    sample_orders.retry(scene.ledger, partition_id, [S.FAILED], None, DEED, NOW)

    rest = Rest(parent_id=seen.parent_id, state=seen.state, reason="late")
    n = turns.reject_rest(scene.ledger, partition_id, [rest])

    assert n == 0
    assert states(scene, partition_id) == ["pending", "pending"]
    hand.keep(hand.one(), S.OK, [1])
    assert len(due(scene, partition_id)) == 1


def test_ids_that_are_taken_back_let_a_prompted_turn_wait(scene: Scene) -> None:
    partition_id = talks(scene, 2, 2)
    hand = scene.hand(partition_id)
    for claim in hand.claim(2):
        hand.keep(claim, S.OK, [1])
    ask(scene, partition_id)
    hand.keep(hand.claim(1)[0], S.OK, [2])

    forget_tokens(scene.ledger, partition_id)

    assert [one.next.record_index for one in due(scene, partition_id)] == [1]
    assert runs.get_partition(scene.ledger, partition_id).intake == "scanned"
    assert intake_rows.untokenized(scene.ledger, partition_id, -1, 9) == []
    assert ask(scene, partition_id) == 1
    scene.check()


def test_a_limit_that_rose_meanwhile_is_not_overlooked(scene: Scene) -> None:
    partition_id = talks(scene, 1, cap=100)

    with pytest.raises(LedgerError, match="changed to 100"):
        intake_rows.record_tokens(scene.ledger, partition_id, [], [], 3, cap_tokens=50)


def test_a_line_that_is_lost_wastes_what_stood_behind_it(scene: Scene) -> None:
    partition_id = talks(scene, 3, 1)
    hand = scene.hand(partition_id)
    first = hand.claim(1)[0]
    hand.keep(first, S.OK, numbers(4))
    ask(scene, partition_id)
    hand.keep(hand.claim(1)[0], S.OK, numbers(5))
    ask(scene, partition_id)
    hand.gain(hand.claim(1)[0], numbers(6))
    hand.die()

    repairs.lose_lines(scene.ledger, partition_id, [first.sample_id])

    assert states(scene, partition_id) == ["pending"] * 4
    tokens = scene.view(partition_id).tokens
    assert (tokens.kept, tokens.held, tokens.wasted) == (0, 0, 15)
    assert scene.rows("SELECT prompt_sha256 FROM sample WHERE turn > 1") == [("",), ("",)]
    assert scene.rows("SELECT * FROM checkpoint") == []
    scene.check()


def test_a_line_of_a_turn_that_waits_is_not_adopted(scene: Scene) -> None:
    partition_id = talks(scene, 2)
    hand = scene.hand(partition_id)
    first = hand.one()
    hand.keep(first, S.OK, [1])
    ask(scene, partition_id)
    second = hand.one()
    line = hand.line(3)
    hand.die()
    repairs.lose_lines(scene.ledger, partition_id, [first.sample_id])

    adopted = adopted_line(second, line, S.OK)
    repairs.adopt(scene.ledger, partition_id, [adopted], (line.shard_id, line.n_bytes, 1))

    assert states(scene, partition_id) == ["pending", "pending"]
    scene.check()


def test_turns_that_wait_are_listed_and_found(scene: Scene) -> None:
    partition_id = talks(scene, 3, 1, 2)
    view = scene.view(partition_id)

    page = browsing.sample_page(scene.ledger, view, S.PENDING, -1, 4)
    rest = browsing.sample_page(scene.ledger, view, S.PENDING, page.next_after or 0, 4)

    keys = [each.key for each in (*page.samples, *rest.samples)]
    assert keys == ["c0", "c0#turn2", "c0#turn3", "c1", "c2", "c2#turn2"]
    for record, n in enumerate((3, 1, 2)):
        hits = searching.search(
            scene.ledger, [partition_id], str(record), state=None, replicas=1, limit=10
        )
        assert [each.index for each in hits.samples] == [record] * n
    none = searching.search(scene.ledger, [partition_id], "3", state=None, replicas=1, limit=10)
    assert none.samples == ()


def test_what_is_asked_each_half_second_is_answered_from_an_index(scene: Scene) -> None:
    talked = talks(scene, *([2] * 200))
    plain = scene.run(Part(n=300), name="plain")[0]
    hand = scene.hand(talked)
    first, second = hand.claim(2)
    hand.keep(first, S.OK, [1])
    hand.fail(second, "no")

    def looks() -> None:
        turns.waited_for(scene.ledger)
        for partition_id in (talked, plain):
            found = turns.due(scene.ledger, partition_id, 64)
            for one in found:
                turns.earlier(scene.ledger, partition_id, one)
        rest = Rest(parent_id=second.sample_id, state=S.FAILED, reason="no")
        turns.reject_rest(scene.ledger, talked, [rest])
        failures.retry_members(scene.ledger, talked, S.FAILED, [(second.sample_id, 1)], DEED, NOW)

    with recorded(scene.ledger) as asked:
        looks()

    assert scans(scene.ledger, asked) == {}
    steps = {sql: "; ".join(plan) for sql, plan in explained(scene.ledger, asked).items()}
    dues = next(plan for sql, plan in steps.items() if "CROSS JOIN" in sql)
    assert "ix_sample_due" in dues
    assert "TEMP B-TREE" not in dues
    assert "ix_sample_awaited" in next(plan for sql, plan in steps.items() if "EXISTS" in sql)


@dataclass
class Walk:
    """Anything that may happen to conversations, in any order."""

    scene: Scene
    partition_id: PartitionId
    random: Random
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.hand = self.scene.hand(self.partition_id)

    def step(self) -> None:
        verbs: list[Callable[[], object]] = [self.claim, self.keep, self.keep, self.ask, self.ask]
        verbs += [self.gain, self.fail, self.retry, self.extend, self.lose, self.put_back]
        verb = self.random.choice(verbs)
        if verb():
            self.done[verb.__name__] += 1

    def some(self) -> Claim | None:
        running = list(self.hand.claimed.values())
        return self.random.choice(running) if running else None

    def claim(self) -> bool:
        return bool(self.hand.claim(self.random.randint(1, 4)))

    def keep(self) -> bool:
        claim = self.some()
        if claim is not None:
            state = self.random.choice([S.OK] * 5 + [S.TRUNCATED] * 2 + sorted(KEPT))
            self.hand.keep(claim, state, numbers(self.random.randint(1, 4)))
        return claim is not None

    def gain(self) -> bool:
        claim = self.some()
        if claim is not None:
            self.hand.gain(claim, numbers(2))
        return claim is not None

    def put_back(self) -> bool:
        claim = self.some()
        if claim is not None:
            self.hand.put_back(claim, [1])
        return claim is not None

    def fail(self) -> bool:
        claim = self.some()
        if claim is not None:
            self.hand.fail(claim, "broken")
        return claim is not None

    def ask(self) -> bool:
        return bool(ask(self.scene, self.partition_id))

    def retry(self) -> bool:
        state = self.random.choice(sorted(RETRYABLE))
        ledger = self.scene.ledger
        if self.random.random() < 0.3:
            return bool(sample_orders.retry(ledger, self.partition_id, [state], None, DEED, NOW))
        chosen = failures.members(ledger, self.partition_id, state, lambda *_: True)[:2]
        return bool(failures.retry_members(ledger, self.partition_id, state, chosen, DEED, NOW))

    def extend(self) -> bool:
        n = states(self.scene, self.partition_id).count("truncated")
        extend(self.scene, self.partition_id)
        return n > 0

    def lose(self) -> bool:
        self.hand.die()
        self.hand = self.scene.hand(self.partition_id)
        rows = self.scene.rows("SELECT id FROM sample WHERE shard_id IS NOT NULL ORDER BY id")
        lost = [SampleId(int(str(row[0]))) for row in rows if self.random.random() < 0.05]
        repairs.lose_lines(self.scene.ledger, self.partition_id, lost)
        return bool(lost)

    def check(self) -> None:
        """Check counters, and that each turn that was asked stands behind an answer that is ok."""
        self.scene.check()
        view = self.scene.view(self.partition_id)
        assert view.counts.total == len(states(self.scene, self.partition_id))
        rows = self.scene.rows(
            "SELECT p.state, p.awaited, c.state, c.token_offset, c.shard_id, c.prompt_sha256,"
            " p.shard_id || ':' || p.line_offset FROM sample p JOIN sample c"
            " ON c.partition_id = p.partition_id AND c.position = p.position + 1"
            " WHERE c.turn > 1 AND p.partition_id = :p",
            p=self.partition_id,
        )
        waiting = [child == "pending" and offset is None for _, _, child, offset, *_ in rows]
        assert view.n_waiting == sum(waiting)
        for parent, awaited, child, offset, shard, sha, line in rows:
            waits = child == "pending" and offset is None
            assert bool(awaited) == waits
            if offset is not None or shard is not None or child in KEPT:
                assert parent == "ok"
                assert str(sha).split(" ")[-1] == str(line)  # the very answer that is valid
            elif not waits:
                assert child == "rejected"
                assert parent != "ok"
                assert parent not in ("pending", "running")


@pytest.mark.parametrize("seed", range(3))
def test_no_turn_is_asked_or_kept_but_behind_the_answer_that_is_valid(
    scene: Scene, seed: int
) -> None:
    partition_id = talks(scene, 3, 1, 2, 4, 2, 3, cap=10_000)
    walk = Walk(scene, partition_id, Random(seed))

    for _ in range(250):
        walk.step()
        walk.check()

    assert set(walk.done) >= {"claim", "keep", "ask", "fail", "retry", "extend", "lose"}
