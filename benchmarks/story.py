"""The workload of the story on the server model: eight partitions of 10M tokens each, two classes.

Owns what is run and how slots are given out: as the service does, by `core/shares.split_class` at
each tick. No wall clock; exact and repeatable per seed.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from app.core.shares import Need, split_class
from benchmarks.server_model import ModelServer, Request, lognormal_lengths

TICK_S = 1.0
PROMPT_TOKENS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One partition: how many answers, how long."""

    name: str
    class_name: str
    mean_tokens: float
    cap_tokens: int
    n_samples: int


def _story(name: str, class_name: str, mean_tokens: float) -> Plan:
    return Plan(
        name=name,
        class_name=class_name,
        mean_tokens=mean_tokens,
        cap_tokens=10_240 if class_name == "short" else 16_384,
        n_samples=round(10_000_000 / mean_tokens),
    )


STORY = (
    _story("B1", "short", 1_500),
    _story("B2", "long", 3_793),
    _story("B3", "short", 1_500),
    _story("B4", "long", 6_000),
    _story("B5", "long", 6_000),
    _story("B6", "short", 1_500),
    _story("B7", "short", 1_500),
    _story("B8", "long", 8_000),
)
STORY_LIMITS = {"short": 150, "long": 32}


@dataclass(slots=True, eq=False, kw_only=True)
class Ask(Request):
    """A request that knows its partition and its place in the input."""

    part: "Part"
    position: int


class Part:
    """One partition as its service sees it. `lengths` are the truth, and only the model's."""

    def __init__(self, plan: Plan, lengths: Sequence[int]) -> None:
        self.plan = plan
        self.lengths = lengths
        self.n_sent = 0
        self.flying: dict[int, Ask] = {}
        self.finished: list[tuple[int, int]] = []  # position, length
        self.finished_tokens = 0
        self.share = 0
        self.ended_at_s: float | None = None

    @property
    def total_tokens(self) -> int:
        return sum(self.lengths)

    @property
    def n_pending(self) -> int:
        return len(self.lengths) - self.n_sent

    @property
    def is_over(self) -> bool:
        return len(self.finished) == len(self.lengths)

    def made_tokens(self, server: ModelServer) -> int:
        return self.finished_tokens + sum(map(server.made, self.flying.values()))


class Work:
    """Plans under way on one server."""

    def __init__(
        self, seed: int, plans: Sequence[Plan], limits: dict[str, int], *, kv_tokens: int = 231_000
    ) -> None:
        random = Random(seed)
        self.server = ModelServer(kv_tokens=kv_tokens)
        self.limits = limits
        self.parts = [
            Part(
                plan,
                lognormal_lengths(
                    random, mean=plan.mean_tokens, cap=plan.cap_tokens, n=plan.n_samples
                ),
            )
            for plan in plans
        ]

    def ticks(self) -> Iterator[float]:
        """Run to the end; yield the moment after each tick."""
        while any(not part.is_over for part in self.parts):
            self._give_out()
            for request in self.server.advance(self.server.now_s + TICK_S):
                assert isinstance(request, Ask)
                self._settle(request)
            yield self.server.now_s

    def _give_out(self) -> None:
        sent: list[deque[Ask]] = []
        for class_name, limit in self.limits.items():
            mine = [p for p in self.parts if p.plan.class_name == class_name and not p.is_over]
            needs = {p.plan.name: Need(n_open=len(p.flying) + p.n_pending) for p in mine}
            shares = split_class(limit, needs)
            for part in mine:
                part.share = shares[part.plan.name]
                sent.append(self._asks(part, part.share - len(part.flying)))
        # the workers send side by side
        while sent := [each for each in sent if each]:
            for each in sent:
                self.server.submit(each.popleft())

    def _asks(self, part: Part, n: int) -> deque[Ask]:
        asks: deque[Ask] = deque()
        for _ in range(min(max(0, n), part.n_pending)):
            length = part.lengths[part.n_sent]
            ask = Ask(PROMPT_TOKENS, length, part.plan.cap_tokens, part=part, position=part.n_sent)
            part.flying[id(ask)] = ask
            part.n_sent += 1
            asks.append(ask)
        return asks

    def _settle(self, ask: Ask) -> None:
        part = ask.part
        del part.flying[id(ask)]
        part.finished.append((ask.position, ask.length_tokens))
        part.finished_tokens += ask.length_tokens
        if part.is_over:
            part.ended_at_s = self.server.now_s
