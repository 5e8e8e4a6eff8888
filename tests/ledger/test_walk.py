"""A random walk over everything that may happen to samples, held against a model in plain Python.

After each step the ledger's counters are what its rows say, and both are what the model says.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest

from app.core.spread import Measure, Spread
from app.core.states import KEPT, RETRYABLE, SampleState
from app.core.types import Claim, Keep, PartitionId, PutBack, SampleId, Segment, Tokens
from app.ledger import extending, measures, repairs, samples, workers
from app.ledger.activity import Deed
from app.ledger.extending import Going
from app.ledger.orders import Order
from tests.ledger.hand import GEN, NOW, URL, Hand, adopted_line
from tests.ledger.scene import Part, Scene

N_SAMPLES = 25
STEPS = 300
SAMPLINGS: list[dict[str, object]] = [{}, {}, {}, {"stop": "##"}, {"repetition_penalty": 1.1}]
OK = Keep(state=SampleState.OK, finish_reason="stop")
BACK = PutBack(charged=False, reason="walk")
DEED = Deed(who="walk", event="retry")


@dataclass
class Model:
    """What one partition must look like; so many of a sample's held tokens are its line's own."""

    states: dict[SampleId, SampleState] = field(default_factory=dict)
    held: dict[SampleId, list[int]] = field(default_factory=dict)
    lines: dict[SampleId, int] = field(default_factory=dict)
    copied: Counter[SampleId] = field(default_factory=Counter)
    received: int = 0
    ended: list[int] = field(default_factory=list)

    @property
    def tokens(self) -> Tokens:
        kept = sum(self.lines.values())
        held = sum(map(len, self.held.values())) - self.copied.total()
        return Tokens(
            received=self.received, kept=kept, held=held, wasted=self.received - kept - held
        )


class Walk:
    def __init__(self, scene: Scene, partition_id: PartitionId, seed: int) -> None:
        self.scene = scene
        self.partition_id = partition_id
        self.random = Random(seed)
        self.hand = scene.hand(partition_id)
        self.steps: Counter[str] = Counter()
        ids = scene.rows("SELECT id FROM sample WHERE partition_id = :p", p=partition_id)
        self.model = Model({SampleId(int(str(row[0]))): SampleState.PENDING for row in ids})

    def step(self) -> None:
        verbs = [self.claim] * 3 + [self.gain] * 4 + [self.keep] * 3 + [self.put_back] * 2
        verbs += [self.fail, self.bury, self.retry, self.lose, self.adopt, self.many, self.leave]
        verbs += [self.extend]
        verb = self.random.choice(verbs)
        if verb():
            self.steps[verb.__name__] += 1

    def some_claim(self) -> Claim | None:
        running = list(self.hand.claimed.values())
        return self.random.choice(running) if running else None

    def fresh(self) -> list[int]:
        return [self.random.getrandbits(17) for _ in range(self.random.randint(0, 6))]

    def claim(self) -> bool:
        sampling = self.random.choice(SAMPLINGS)
        self.hand.gen_id = self.random.choice(["gen-one"] * 9 + ["gen-two"])
        found = self.hand.claim(self.random.randint(1, 5), sampling)
        for claim in found:
            before = self.model.held.get(claim.sample_id, [])
            assert list(claim.held) == before[: len(claim.held)]
            assert claim.previous_tokens == self.model.lines.get(claim.sample_id, 0)
            copied = min(self.model.copied[claim.sample_id], len(claim.held))
            assert claim.line_tokens == copied
            self.model.copied[claim.sample_id] = copied
            self.model.held[claim.sample_id] = list(claim.held)
            self.model.states[claim.sample_id] = SampleState.RUNNING
        return bool(found)

    def gain(self) -> bool:
        claim, fresh = self.some_claim(), self.fresh()
        if claim is None or not fresh:
            return False
        self.hand.gain(claim, fresh)
        self._received(claim, fresh)
        return True

    def _received(self, claim: Claim, fresh: list[int]) -> None:
        self.model.received += len(fresh)
        self.model.held.setdefault(claim.sample_id, []).extend(fresh)

    def keep(self) -> bool:
        claim, fresh = self.some_claim(), self.fresh()
        if claim is None:
            return False
        state = self.random.choice(sorted(KEPT))
        self.hand.keep(claim, state, fresh)
        self._received(claim, fresh)
        self.model.ended.append(len(self.model.held[claim.sample_id]))
        self._end(claim.sample_id, state)
        return True

    def _end(self, sample_id: SampleId, state: SampleState) -> None:
        made = self.model.held.pop(sample_id, [])
        self.model.copied.pop(sample_id, None)
        self.model.states[sample_id] = state
        if state in KEPT:
            self.model.lines[sample_id] = len(made)

    def put_back(self) -> bool:
        claim, fresh = self.some_claim(), self.fresh()
        if claim is None:
            return False
        over, charged = self.random.random() < 0.2, self.random.random() < 0.5
        self.hand.put_back(claim, fresh, start_over=over, charged=charged)
        self._received(claim, fresh)
        self.model.states[claim.sample_id] = SampleState.PENDING
        if over:
            copied = self.model.copied[claim.sample_id]
            self.model.held[claim.sample_id] = self.model.held[claim.sample_id][:copied]
        return True

    def fail(self) -> bool:
        claim, fresh = self.some_claim(), self.fresh()
        if claim is None:
            return False
        self.hand.fail(claim, unsaved=fresh)
        self.model.received += len(fresh)
        # what was being extended has its answer still
        was_extended = self.model.copied[claim.sample_id] > 0
        lines = self.model.lines.get(claim.sample_id, 0)
        self._end(claim.sample_id, SampleState.TRUNCATED if was_extended else SampleState.FAILED)
        if was_extended:
            self.model.lines[claim.sample_id] = lines
        return True

    def many(self) -> bool:
        """One tick in which several samples gain and several end."""
        running = list(self.hand.claimed.values())
        if len(running) < 3:
            return False
        first, second, third = self.random.sample(running, 3)
        gained, made = self.fresh() or [1], self.fresh() or [2]
        gain = self.hand.gained(first, gained)
        entries = (self.hand.settled(second, OK, made), self.hand.settled(third, BACK))
        self.hand.made[first.sample_id].extend(gained)
        self.hand.forget(second)
        self.hand.forget(third)
        self.hand.tick((gain,), entries)
        self._received(first, gained)
        self._received(second, made)
        self.model.ended.append(len(self.model.held[second.sample_id]))
        self._end(second.sample_id, SampleState.OK)
        self.model.states[third.sample_id] = SampleState.PENDING
        return True

    def bury(self) -> bool:
        running = set(self.hand.claimed)
        assert self.hand.die() == len(running)
        self._idle(running)
        return bool(running)

    def _idle(self, running: set[SampleId]) -> None:
        for sample_id in running:
            self.model.states[sample_id] = SampleState.PENDING
        self.hand = self.scene.hand(self.partition_id)

    def leave(self) -> bool:
        running = set(self.hand.claimed)
        for claim in list(self.hand.claimed.values()):
            self.hand.put_back(claim)
        workers.deregister(self.scene.ledger, self.hand.worker_id, "stop", NOW)
        self._idle(running)
        return True

    def retry(self) -> bool:
        chosen = self.random.sample(sorted(RETRYABLE), self.random.randint(1, 3))
        moved = samples.retry(self.scene.ledger, self.partition_id, chosen, None, DEED, NOW)
        hit = [key for key, state in self.model.states.items() if state in chosen]
        for sample_id in hit:
            self.model.states[sample_id] = SampleState.PENDING
        assert moved == len(hit)
        return bool(hit)

    def extend(self) -> bool:
        """Let some truncated answers go on, from one or two pieces of what their lines have."""
        found = extending.truncated(self.scene.ledger, self.partition_id, -1, 100, None)
        cuts = [each for each in found if self.random.random() < 0.5]
        batch = []
        for cut in cuts:
            assert cut.output_tokens == self.model.lines[cut.sample_id]
            n = max(0, cut.output_tokens - self.random.randint(0, 1))
            ids = [self.random.getrandbits(17) for _ in range(n)]
            at = self.random.randint(0, n)
            pieces = [
                (Segment(from_token=start, rid=rid, server=URL, gen_id=GEN), array("I", part))
                for start, rid, part in ((0, "one", ids[:at]), (at, "two", ids[at:]))
                if part
            ]
            packed = [(segment, part.tobytes()) for segment, part in pieces]
            batch.append(Going(cut=cut, pieces=packed))
            self.model.states[cut.sample_id] = SampleState.PENDING
            self.model.held[cut.sample_id] = ids
            self.model.copied[cut.sample_id] = n
        order = Order(run_id=self.scene.run_id(self.partition_id), who="walk", now=NOW)
        assert extending.go_on(self.scene.ledger, order, self.partition_id, batch) == []
        return bool(cuts)

    def lose(self) -> bool:
        """Recovery finds lines gone; it looks only where no worker lives."""
        self.bury()
        lost = [key for key in self.model.lines if self.random.random() < 0.1]
        repairs.lose_lines(self.scene.ledger, self.partition_id, lost)
        for sample_id in lost:
            del self.model.lines[sample_id]
            self.model.copied.pop(sample_id, None)
            if self.model.states[sample_id] in KEPT:
                self.model.states[sample_id] = SampleState.PENDING
        return bool(lost)

    def adopt(self) -> bool:
        """The worker dies between line and settle; what it wrote is taken."""
        claim, fresh = self.some_claim(), self.fresh()
        if claim is None:
            return False
        n_tokens = len(self.hand.made[claim.sample_id]) + len(fresh)
        line = self.hand.line(n_tokens)
        adopted = adopted_line(claim, line, SampleState.TRUNCATED)
        committed = (line.shard_id, self.hand.shard_bytes, 1)
        repairs.adopt(self.scene.ledger, self.partition_id, [adopted], committed)
        self._received(claim, fresh)
        self.model.ended.append(n_tokens)
        self._end(claim.sample_id, SampleState.TRUNCATED)
        self.hand.forget(claim)
        return self.bury()

    def check(self) -> None:
        self.scene.check()
        view = self.scene.view(self.partition_id)
        assert view.tokens == self.model.tokens
        counted = Counter(self.model.states.values())
        assert {state: getattr(view.counts, state) for state in SampleState} == {
            state: counted[state] for state in SampleState
        }

    def check_checkpoints(self) -> None:
        rows = self.scene.rows(
            "SELECT c.sample_id, c.ids FROM checkpoint c JOIN sample s ON s.id = c.sample_id"
            " WHERE s.partition_id = :p ORDER BY c.sample_id, c.from_token",
            p=self.partition_id,
        )
        stored: dict[int, list[int]] = {}
        for sample_id, ids in rows:
            assert isinstance(ids, bytes)
            stored.setdefault(int(str(sample_id)), []).extend(array("I", ids))
        assert stored == {key: ids for key, ids in self.model.held.items() if ids}


@pytest.mark.parametrize("seed", range(4))
def test_counters_and_checkpoints_are_true_after_every_step(scene: Scene, seed: int) -> None:
    partition_id, neighbour = scene.run(
        Part(name="a", n=N_SAMPLES, cap=10_000), Part(name="b", n=5)
    )
    untouched: Hand = scene.hand(neighbour)
    untouched.gain(untouched.one(), [1, 2, 3])
    beside = scene.view(neighbour)
    walk = Walk(scene, partition_id, seed)

    for number in range(STEPS):
        walk.step()
        walk.check()
        if number % 10 == 0:
            walk.check_checkpoints()

    walk.check_checkpoints()
    ended = measures.spread(scene.ledger, partition_id, Measure.OUTPUT)
    assert ended == Spread.of(walk.model.ended)
    assert scene.view(neighbour) == beside
    assert len(walk.steps) == 12, walk.steps  # every verb had its turn
