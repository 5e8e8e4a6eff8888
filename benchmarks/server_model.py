"""A discrete-event model of a server with continuous batching, for budgets and ETAs without one.

Owns the model only; no clock, exact and repeatable per seed. A decode step with B requests takes
`start_s + per_request_s * B` seconds and gives each one token. Admission keeps room for the
running ones in proportion to a ratio that decays while nothing goes wrong; when the KV pool runs
out, the requests with the fewest tokens are retracted and later prefilled anew.
The constants give about 90 tokens a second for one stream, 1,000 at 32 and 1,350 at 150.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

PREFILL_TOKENS_PER_S = 10_000
RESERVE_CLIP_TOKENS = 4096
SAFETY_TOKENS = 20
RATIO_START, RATIO_FLOOR, RATIO_STEPS = 0.7, 0.098, 600
STEPS_WHILE_QUEUED = 16


def lognormal_lengths(
    random: Random, *, mean: float, cap: int, n: int, sigma: float = 0.9
) -> list[int]:
    """Return n lognormal lengths, cut at the cap, whose mean after the cut is `mean`."""
    low, high = math.log(mean) - 3, math.log(mean) + 4
    for _ in range(60):
        mu = (low + high) / 2
        low, high = (mu, high) if _mean_cut_at(mu, sigma, cap) < mean else (low, mu)
    return [max(16, min(cap, int(random.lognormvariate(mu, sigma)))) for _ in range(n)]


def _mean_cut_at(mu: float, sigma: float, cap: int) -> float:
    z = (math.log(cap) - mu) / sigma
    below = math.exp(mu + sigma * sigma / 2) * _normal(z - sigma)
    return below + cap * (1 - _normal(z))


def _normal(z: float) -> float:
    return (1 + math.erf(z / math.sqrt(2))) / 2


@dataclass(slots=True, eq=False)
class Request:
    """One request: what it will come to, and what it has. Only the model may look at `length`."""

    prompt_tokens: int
    length_tokens: int
    cap_tokens: int
    done_tokens: int = 0  # made before the step `since_step`
    since_step: int | None = None  # None while it waits
    n_admitted: int = 0


class ModelServer:
    def __init__(
        self,
        *,
        kv_tokens: int = 231_000,
        start_s: float = 0.01044,
        per_request_s: float = 0.000667,
        max_running: int = 4096,
    ) -> None:
        self.kv_tokens = kv_tokens
        self.start_s = start_s
        self.per_request_s = per_request_s
        self.max_running = max_running
        self.now_s = 0.0
        self.steps = 0
        self.used_tokens = 0
        self.made_tokens = 0
        self.n_retracted = 0
        self.running: dict[int, Request] = {}
        self.waiting: deque[Request] = deque()
        self._ends: list[tuple[int, int, int, Request]] = []  # step, serial, n_admitted, request
        self._serial = 0
        self._ratio = RATIO_START

    @property
    def n_in_flight(self) -> int:
        return len(self.running) + len(self.waiting)

    def submit(self, request: Request) -> None:
        self.waiting.append(request)

    def made(self, request: Request) -> int:
        """Return the tokens that the request has so far."""
        if request.since_step is None:
            return request.done_tokens
        return request.done_tokens + self.steps - request.since_step

    def lengths_so_far(self) -> list[int]:
        return [self.made(request) for request in (*self.running.values(), *self.waiting)]

    def advance(self, until_s: float) -> list[Request]:
        """Run to `until_s`, or a step past it; return what finished on the way."""
        finished: list[Request] = []
        while self.now_s < until_s:
            self._admit()
            if not self.running:
                self.now_s = until_s
            else:
                finished += self._decode(until_s)
        return finished

    def _admit(self) -> None:
        if not self.waiting:
            return
        room = (
            self.kv_tokens
            - self.used_tokens
            - self._ratio * sum(map(self._may_still_need, self.running.values()))
        )
        prefilled = 0
        while self.waiting and len(self.running) < self.max_running:
            request = self.waiting[0]
            context = request.prompt_tokens + request.done_tokens
            hold = context + self._may_still_need(request)
            if hold > room and self.running:
                break
            self.waiting.popleft()
            self._start(request)
            self.used_tokens += context
            room -= hold
            prefilled += context
        self.now_s += prefilled / PREFILL_TOKENS_PER_S

    def _may_still_need(self, request: Request) -> int:
        return min(request.cap_tokens - self.made(request), RESERVE_CLIP_TOKENS)

    def _start(self, request: Request) -> None:
        request.since_step = self.steps
        request.n_admitted += 1
        self._serial += 1
        self.running[id(request)] = request
        end_step = self.steps + request.length_tokens - request.done_tokens
        heapq.heappush(self._ends, (end_step, self._serial, request.n_admitted, request))

    def _decode(self, until_s: float) -> list[Request]:
        if self.kv_tokens - self.used_tokens < len(self.running):
            self._retract()
        batch = len(self.running)
        step_s = self.start_s + self.per_request_s * batch
        steps = min(self._next_end() - self.steps, (self.kv_tokens - self.used_tokens) // batch)
        if self.waiting:
            steps = min(steps, STEPS_WHILE_QUEUED)
        steps = max(1, min(steps, math.ceil((until_s - self.now_s) / step_s)))
        self.now_s += steps * step_s
        self.steps += steps
        self.used_tokens += batch * steps
        self.made_tokens += batch * steps
        decay = steps * (RATIO_START - RATIO_FLOOR) / RATIO_STEPS
        self._ratio = max(RATIO_FLOOR, self._ratio - decay)
        return list(self._take_ended())

    def _retract(self) -> None:
        order = sorted(self.running.values(), key=self.made, reverse=True)
        while len(order) > 1 and self.kv_tokens - self.used_tokens < SAFETY_TOKENS * len(order):
            request = order.pop()
            del self.running[id(request)]
            request.done_tokens = self.made(request)
            request.since_step = None
            self.used_tokens -= request.prompt_tokens + request.done_tokens
            self.n_retracted += 1
            self.waiting.appendleft(request)
        total = sum(self.made(request) for request in order)
        caps = sum(request.cap_tokens for request in order)
        self._ratio = min(1.0, (total + SAFETY_TOKENS * len(order)) / (caps + 1))

    def _next_end(self) -> int:
        while self._is_stale(self._ends[0]):
            heapq.heappop(self._ends)
        return self._ends[0][0]

    def _take_ended(self) -> Iterable[Request]:
        while self._ends and (self._ends[0][0] <= self.steps or self._is_stale(self._ends[0])):
            entry = heapq.heappop(self._ends)
            if self._is_stale(entry):
                continue
            request = entry[3]
            del self.running[id(request)]
            self.used_tokens -= request.prompt_tokens + request.length_tokens
            yield request

    def _is_stale(self, entry: tuple[int, int, int, Request]) -> bool:
        """Whether the request was retracted after this end was planned."""
        request = entry[3]
        return request.since_step is None or request.n_admitted != entry[2]
