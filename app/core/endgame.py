"""How the last answers of a partition come to their end: how many are still in flight, and when.

Owns one curve per partition: the slot-steps until the last fresh sample is sent, and after that
the expected number in flight by steps. A step gives each running answer one token. Waiting in the
server's queue counts as `wait_steps` before each answer's first token.
The expected number left after x steps is the sum of S(age + x) / S(age), with the lengths'
survival S; none is left with probability exp(-expected), so that the end has a distribution.
Invariant: the curve never rises and reaches the end.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from operator import neg

from app.core.lengths import Lengths

# the likely end: with one half none is left by then
LIKELY_LEFT = log(2)
_N_AGES = 32
_N_POINTS = 32
_N_BISECTIONS = 24
_TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Decline:
    """`in_flight[i]` are expected in flight `at_steps[i]` steps after the last one was sent.

    `bulk_steps` pass before that with `slots` in flight all the time; the decline takes
    `slot_steps` more, in proportion to the slots.
    """

    slots: float
    bulk_steps: float
    slot_steps: float
    at_steps: Sequence[float]
    in_flight: Sequence[float]

    def steps_until(self, left: float) -> float:
        """Return after how many steps only `left` are expected in flight."""
        at, n = self.at_steps, self.in_flight
        if n[0] <= left:
            return 0.0
        i = bisect_left(n, -left, lo=1, key=neg)
        if i == len(n):
            return at[-1]
        part = (n[i - 1] - left) / max(_TINY, n[i - 1] - n[i])
        return at[i - 1] + part * (at[i] - at[i - 1])


class _Flight:
    """The answers begun, in at most 32 groups by age, and how lengths and waits go on."""

    def __init__(self, lengths: Lengths, ages: Sequence[int], wait_steps: float) -> None:
        self._lengths = lengths
        self._wait = wait_steps
        self._groups = [
            (age, n, max(_TINY, self.alive(age))) for age, n in _grouped(ages, wait_steps)
        ]

    def alive(self, age: float) -> float:
        """Return the share that is in flight still `age` steps after it was sent."""
        return 1.0 if age < self._wait else self._lengths.survival_above(age - self._wait)

    def area(self, age: float) -> float:
        if age >= self._wait:
            return self._lengths.area_above(age - self._wait)
        return self._wait - age + self._lengths.area_above(0)

    @property
    def longest(self) -> float:
        return self._lengths.cap_tokens + self._wait

    def slot_steps(self, n_fresh: float) -> float:
        """Return for how many steps a slot is taken, in sum over all that is left."""
        begun = sum(n * self.area(age) / now for age, n, now in self._groups)
        return begun + n_fresh * self.area(0)

    def left_after(self, bulk: float, steps: float, n_fresh: float) -> float:
        """Return how many are in flight `steps` after the bulk in which the fresh were sent."""
        later = bulk + steps
        left = sum(n * self.alive(age + later) / now for age, n, now in self._groups)
        if n_fresh <= 0:
            return left
        if bulk <= 0:
            return left + n_fresh * self.alive(steps)
        return left + n_fresh / bulk * (self.area(steps) - self.area(later))


def _grouped(ages: Sequence[int], wait_steps: float) -> list[tuple[float, int]]:
    """Return (steps since it was sent, how many) of the answers begun.

    Those without a token wait: they are taken to stand evenly spread in the queue.
    """
    n_waiting = sum(age == 0 for age in ages)
    sent = [(i + 0.5) / n_waiting * wait_steps for i in range(n_waiting)]
    sent += [age + wait_steps for age in ages if age]
    sent.sort()
    size = -(-len(sent) // _N_AGES) or 1
    chunks = [sent[i : i + size] for i in range(0, len(sent), size)]
    return [(sum(chunk) / len(chunk), len(chunk)) for chunk in chunks]


def decline(
    lengths: Lengths, ages: Sequence[int], n_fresh: float, slots: float, wait_steps: float = 0.0
) -> Decline:
    """Return how a partition goes on with `slots` in flight while fresh samples are left.

    1. Find the bulk after which as many are expected in flight as there are slots, with the fresh
       ones sent evenly over it. 2. Take the decline from there. 3. All that is not part of it is
       bulk: so that what is to be made stays the same, however evenly they are really sent.
    """
    flight = _Flight(lengths, ages, wait_steps)
    slots = max(slots, _TINY)
    bulk = _bulk_steps(flight, n_fresh, slots)
    end = lengths.cap_tokens + wait_steps
    at = [end * (i / _N_POINTS) for i in range(_N_POINTS + 1)]
    n, least = [], float("inf")
    for steps in at:
        least = min(least, flight.left_after(bulk, steps, n_fresh))
        n.append(max(0.0, least))
    n[-1] = 0.0
    declining = end / _N_POINTS * (sum(n) - (n[0] + n[-1]) / 2)
    if bulk > 0:
        bulk = max(0.0, (flight.slot_steps(n_fresh) - declining) / slots)
    return Decline(slots=slots, bulk_steps=bulk, slot_steps=declining, at_steps=at, in_flight=n)


def _bulk_steps(flight: _Flight, n_fresh: float, slots: float) -> float:
    if n_fresh <= 0 or flight.left_after(0.0, 0.0, n_fresh) <= slots:
        return 0.0
    low, high = 0.0, flight.slot_steps(n_fresh) / slots + flight.longest
    for _ in range(_N_BISECTIONS):
        bulk = (low + high) / 2
        too_many = flight.left_after(bulk, 0.0, n_fresh) > slots
        low, high = (bulk, high) if too_many else (low, bulk)
    return high
